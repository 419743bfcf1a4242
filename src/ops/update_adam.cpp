#include "ops/update_adam.h"

#include <cmath>

namespace vitrail {

double Moments::m_correction(double step) const {
  return 1 / (1 - std::pow(beta1, step));
}

double Moments::root_v_correction(double step) const {
  return 1 / std::sqrt(1 - std::pow(beta2, step));
}

std::string Moments::text() const {
  return strf(" betas=%g,%g eps=%g", beta1, beta2, eps);
}

std::vector<TensorDesc> AdamUpdateOp::infer(DescSpan ins) const {
  expect_update(*this, ins, 2);
  return {};
}

double AdamUpdateOp::flops(DescSpan ins, DescSpan) const {
  return 15.0 * static_cast<double>(ins[0].elems());
}

}  // namespace vitrail
