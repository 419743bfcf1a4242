// Lion (Chen et al. 2023): w = (1 - shrink) w - lr sign(b1 m + (1-b1) g); m = b2 m + (1-b2) g, where
// g += coupled w. Inputs: param, gradient sum, m, control.
#pragma once

#include "ops/update/common.h"

namespace vitrail {

class LionUpdateOp : public Op {
 public:
  LionUpdateOp(const UpdateScale& scale, double beta1, double beta2)
      : scale_(scale), beta1_(beta1), beta2_(beta2) {}
  LionUpdateOp(const UpdateScale& scale, const UpdateSettings& settings)
      : LionUpdateOp(scale, settings.beta1, settings.beta2) {}

  static constexpr std::string_view kKind = "lion_update";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"Z"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  std::span<const int> updates() const override { return first_inputs(2 + states()); }

  int states() const { return 1; }
  const UpdateScale& scale() const { return scale_; }
  double beta1() const { return beta1_; }
  double beta2() const { return beta2_; }

 private:
  UpdateScale scale_;
  double beta1_, beta2_;
};

inline std::vector<TensorDesc> LionUpdateOp::infer(DescSpan ins) const {
  expect_update(*this, ins, states());
  return {};
}

inline double LionUpdateOp::flops(DescSpan ins, DescSpan) const {
  return 12.0 * static_cast<double>(ins[0].elems());
}

inline std::string LionUpdateOp::attributes() const {
  return scale_.text() + strf(" betas=%g,%g", beta1_, beta2_);
}

}  // namespace vitrail
