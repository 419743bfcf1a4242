#include "ops/update_lamb.h"

namespace vitrail {

std::vector<TensorDesc> LambUpdateOp::infer(DescSpan ins) const {
  expect_update(*this, ins, 2);
  return {};
}

double LambUpdateOp::flops(DescSpan ins, DescSpan) const {
  return 27.0 * static_cast<double>(ins[0].elems());
}

std::string LambUpdateOp::attributes() const {
  return scale_.text() + moments_.text() + (adapts_ ? "" : " not adapted");
}

double LambUpdateOp::ratio(double param_norm, double update_norm) const {
  return adapts_ && param_norm > 0 && update_norm > 0 ? param_norm / update_norm : 1;
}

}  // namespace vitrail
