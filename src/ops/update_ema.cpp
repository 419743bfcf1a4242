#include "ops/update_ema.h"

#include <algorithm>

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> EmaUpdateOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 4);
  expect_same(*this, {ins[0].dtype, ins[1].shape}, ins[0]);
  expect_same(*this, hyper_desc(), ins[2]);
  expect_same(*this, control_desc(), ins[3]);
  return {};
}

double EmaUpdateOp::flops(DescSpan ins, DescSpan) const {
  return 3.0 * static_cast<double>(ins[0].elems());
}

double EmaUpdateOp::decay(const double* hyper, const StepValues& step) const {
  const double d = hyper[kHyperEma];
  return warmup_ ? std::min(d, (1 + step.step) / (10 + step.step)) : d;
}

}  // namespace vitrail
