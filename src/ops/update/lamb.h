// LAMB (You et al. 2020, algorithm 2, with bias correction): Adam's direction plus the decay, rescaled so
// that a step is a fixed share of the parameter's norm.
//   m, v as Adam; u = m/(1-b1^t) / (sqrt(v)/sqrt(1-b2^t) + eps) + wd w
//   r = |w| / |u|, within the trust limits, and 1 when either norm is 0 or the parameter is not adapted
//   w -= lr r u
// Norms are over the whole parameter. Inputs: param, gradient sum, m, v, control.
#pragma once

#include <algorithm>

#include "ops/update/adam.h"

namespace vitrail {

class LambUpdateOp : public Op {
 public:
  struct Trust {
    double min = 0, max = 0;  // max 0: no limit
  };

  LambUpdateOp(const UpdateScale& scale, const Moments& moments, bool adapts, const Trust& trust)
      : scale_(scale), moments_(moments), adapts_(adapts), trust_(trust) {}
  LambUpdateOp(const UpdateScale& scale, const Moments& moments, bool adapts)
      : LambUpdateOp(scale, moments, adapts, Trust()) {}
  LambUpdateOp(const UpdateScale& scale, const UpdateSettings& s)
      : LambUpdateOp(scale, Moments{s.beta1, s.beta2, s.eps, s.bias_correction},
                     s.adapt_all || scale.weight_decay != 0, {s.trust_min, s.trust_max}) {}

  static constexpr std::string_view kKind = "lamb_update";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {kEveryDim}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].elems(); }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  std::span<const int> updates() const override { return first_inputs(2 + states()); }

  int states() const { return 2; }
  const UpdateScale& scale() const { return scale_; }
  const Moments& moments() const { return moments_; }
  bool adapts() const { return adapts_; }
  const Trust& trust() const { return trust_; }
  double ratio(double param_norm, double update_norm) const;  // r

 private:
  UpdateScale scale_;
  Moments moments_;
  bool adapts_;
  Trust trust_;
};

inline std::vector<TensorDesc> LambUpdateOp::infer(DescSpan ins) const {
  expect_update(*this, ins, states());
  return {};
}

inline double LambUpdateOp::flops(DescSpan ins, DescSpan) const {
  return 27.0 * static_cast<double>(ins[0].elems());
}

inline std::string LambUpdateOp::attributes() const {
  return scale_.text() + moments_.text() + (adapts_ ? "" : " not adapted") +
         (trust_.min > 0 || trust_.max > 0 ? strf(" trust=%g,%g", trust_.min, trust_.max) : "");
}

inline double LambUpdateOp::ratio(double param_norm, double update_norm) const {
  if (!adapts_ || !(param_norm > 0 && update_norm > 0)) return 1;
  const double ratio = std::max(param_norm / update_norm, trust_.min);
  return trust_.max > 0 ? std::min(ratio, trust_.max) : ratio;
}

}  // namespace vitrail
