#include "ops/update/control.h"

#include <algorithm>
#include <cmath>

#include "ops/expect.h"

namespace vitrail {

namespace {

TensorDesc scalars(int64_t count) {
  return {DType::kF64, {{'Z', count}}};
}

// torch adds this to the norm before dividing by it.
constexpr double kClipEpsilon = 1e-6;

}  // namespace

std::vector<TensorDesc> SquareSumOp::infer(DescSpan ins) const {
  VT_CHECK(!ins.empty(), "square_sum: expected at least one input");
  return {scalars(1)};
}

double SquareSumOp::flops(DescSpan ins, DescSpan) const {
  double total = 0;
  for (const TensorDesc& in : ins) total += 2.0 * static_cast<double>(in.elems());
  return total;
}

std::vector<TensorDesc> StepControlOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, counts_overflows() ? 5 : 4);
  const TensorDesc wanted[] = {scalars(1), hyper_desc(), scalars(1), scalars(kUpdateCounters), scalars(1)};
  for (size_t i = 0; i < ins.size(); ++i) expect_same(*this, wanted[i], ins[i]);
  return {control_desc()};
}

std::string StepControlOp::attributes() const {
  std::string text = max_norm_ > 0 ? strf("clip=%g", max_norm_) : "no clip";
  return text + (scale_.dynamic ? ", dynamic loss scale" : "");
}

StepValues StepControlOp::decide(double square_sum, const double* hyper, double* loss_scale, double* counters,
                                 double* passed) const {
  const double norm = std::sqrt(square_sum) / *loss_scale;
  const bool skip = !std::isfinite(norm);
  const double clip = max_norm_ > 0 ? std::min(1.0, max_norm_ / (norm + kClipEpsilon)) : 1.0;
  counters[skip ? kSkippedUpdates : kAppliedUpdates] += 1;
  counters[kSkippedInARow] = skip ? counters[kSkippedInARow] + 1 : 0;
  const StepValues values{.skip = skip ? 1.0 : 0.0,
                          .grad_factor = clip / *loss_scale,
                          .lr = hyper[kHyperLr],
                          .decay = hyper[kHyperDecay],
                          .step = counters[kAppliedUpdates],
                          .grad_norm = norm};
  counters[kGoodUpdates] = skip ? 0 : counters[kGoodUpdates] + 1;
  if (scale_.dynamic) advance_scale(skip, loss_scale, counters, passed);
  return values;
}

void StepControlOp::advance_scale(bool skip, double* loss_scale, double* counters, double* passed) const {
  if (passed && !skip && scale_.consecutive) *passed = 0;
  if (passed && skip && *passed < static_cast<double>(scale_.hysteresis - 1))
    *passed += 1;
  else if (skip)
    *loss_scale = std::max(scale_.min, *loss_scale / 2);
  if (counters[kGoodUpdates] < static_cast<double>(scale_.window)) return;
  *loss_scale = std::min(scale_.max, *loss_scale * 2);
  counters[kGoodUpdates] = 0;
  if (passed) *passed = 0;
}

}  // namespace vitrail
