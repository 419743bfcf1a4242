// Hyperbolic tangent, elementwise: the activation of pre_logits.
#pragma once

#include "graph/op.h"

namespace vitrail {

class TanhOp : public Op {
 public:
  static constexpr std::string_view kKind = "tanh";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {}; }
  int in_place_input() const override { return 0; }
};

// Computes dx from y and dy.
class TanhGradOp : public Op {
 public:
  static constexpr std::string_view kKind = "tanh_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  PrecisionRole precision_role() const override { return PrecisionRole::kLikeFirst; }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 1; }
};

}  // namespace vitrail
