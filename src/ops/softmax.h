// Softmax over the classes K, the last dim.
#pragma once

#include "graph/op.h"

namespace vitrail {

class SoftmaxOp : public Op {
 public:
  std::string_view kind() const override { return "softmax"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"K"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 0; }
};

// dx from y and dy.
class SoftmaxGradOp : public Op {
 public:
  std::string_view kind() const override { return "softmax_grad"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"K"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 1; }
};

}  // namespace vitrail
