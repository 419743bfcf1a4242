// Adam and AdamW, as torch computes them; the two differ in UpdateScale::decay alone.
//   g += coupled w; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2
//   w = (1 - shrink) w - lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps)
// The new m is used before it is rounded to its stored type. Inputs: param, gradient sum, m, v, control.
#pragma once

#include <cmath>

#include "ops/update/common.h"

namespace vitrail {

struct Moments {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool corrected = true;

  // The bias corrections of m and of sqrt(v), which start at zero: 1/(1-b1^t) and 1/sqrt(1-b2^t); 1 where
  // they are not corrected.
  double m_correction(double step) const;
  double root_v_correction(double step) const;
  std::string text() const;
};

class AdamUpdateOp : public Op {
 public:
  AdamUpdateOp(const UpdateScale& scale, const Moments& moments) : scale_(scale), moments_(moments) {}
  AdamUpdateOp(const UpdateScale& scale, const UpdateSettings& settings)
      : AdamUpdateOp(scale, Moments{settings.beta1, settings.beta2, settings.eps, settings.bias_correction}) {
  }

  static constexpr std::string_view kKind = "adam_update";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"Z"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return scale_.text() + moments_.text(); }
  std::span<const int> updates() const override { return first_inputs(2 + states()); }

  int states() const { return 2; }
  const UpdateScale& scale() const { return scale_; }
  const Moments& moments() const { return moments_; }

 private:
  UpdateScale scale_;
  Moments moments_;
};

inline double Moments::m_correction(double step) const {
  return corrected ? 1 / (1 - std::pow(beta1, step)) : 1;
}

inline double Moments::root_v_correction(double step) const {
  return corrected ? 1 / std::sqrt(1 - std::pow(beta2, step)) : 1;
}

inline std::string Moments::text() const {
  return strf(" betas=%g,%g eps=%g", beta1, beta2, eps) + (corrected ? "" : " not corrected");
}

inline std::vector<TensorDesc> AdamUpdateOp::infer(DescSpan ins) const {
  expect_update(*this, ins, states());
  return {};
}

inline double AdamUpdateOp::flops(DescSpan ins, DescSpan) const {
  return 15.0 * static_cast<double>(ins[0].elems());
}

}  // namespace vitrail
