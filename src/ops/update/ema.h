// The exponential moving average of a parameter: ema = d ema + (1-d) w, d from hyper; with warm-up
// min(d, (1+t)/(10+t)), t counting applied updates. Inputs: ema, param, hyper, control.
#pragma once

#include <algorithm>

#include "ops/expect.h"
#include "ops/update/common.h"

namespace vitrail {

class EmaUpdateOp : public Op {
 public:
  explicit EmaUpdateOp(bool warmup) : warmup_(warmup) {}

  static constexpr std::string_view kKind = "ema_update";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"Z"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return warmup_ ? "warm-up" : ""; }
  std::span<const int> updates() const override { return first_inputs(1); }

  bool warmup() const { return warmup_; }
  double decay(const double* hyper, const StepValues& step) const;  // d

 private:
  bool warmup_;
};

inline std::vector<TensorDesc> EmaUpdateOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 4);
  expect_same(*this, {ins[0].dtype, ins[1].shape}, ins[0]);
  expect_same(*this, hyper_desc(), ins[2]);
  expect_same(*this, control_desc(), ins[3]);
  return {};
}

inline double EmaUpdateOp::flops(DescSpan ins, DescSpan) const {
  return 3.0 * static_cast<double>(ins[0].elems());
}

inline double EmaUpdateOp::decay(const double* hyper, const StepValues& step) const {
  const double d = hyper[kHyperEma];
  return warmup_ ? std::min(d, (1 + step.step) / (10 + step.step)) : d;
}

}  // namespace vitrail
