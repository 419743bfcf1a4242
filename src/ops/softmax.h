// Softmax over the classes K, the last dim.
#pragma once

#include "graph/op.h"

namespace vitrail {

class SoftmaxOp : public Op {
 public:
  static constexpr std::string_view kKind = "softmax";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"K"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 0; }
};

// Computes dx from y and dy.
class SoftmaxGradOp : public Op {
 public:
  static constexpr std::string_view kKind = "softmax_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"K"}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].shape.local('K'); }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 1; }
};

}  // namespace vitrail
