// An activation other than the gelu, elementwise: relu, silu and their like.
#pragma once

#include "graph/op.h"
#include "ops/act_kind.h"

namespace vitrail {

class ActivateOp : public Op {
 public:
  explicit ActivateOp(ActKind act);

  static constexpr std::string_view kKind = "activate";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return enum_name(act_); }
  int in_place_input() const override { return 0; }

  ActKind act() const { return act_; }

 private:
  ActKind act_;
};

// Computes dx from x and dy.
class ActivateGradOp : public Op {
 public:
  explicit ActivateGradOp(ActKind act) : act_(act) {}

  static constexpr std::string_view kKind = "activate_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  PrecisionRole precision_role() const override { return PrecisionRole::kLikeFirst; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return enum_name(act_); }
  int in_place_input() const override { return 1; }

  ActKind act() const { return act_; }

 private:
  ActKind act_;
};

}  // namespace vitrail
