#include "ops/update_lion.h"

namespace vitrail {

std::vector<TensorDesc> LionUpdateOp::infer(DescSpan ins) const {
  expect_update(*this, ins, 1);
  return {};
}

double LionUpdateOp::flops(DescSpan ins, DescSpan) const {
  return 12.0 * static_cast<double>(ins[0].elems());
}

std::string LionUpdateOp::attributes() const {
  return scale_.text() + strf(" betas=%g,%g", beta1_, beta2_);
}

}  // namespace vitrail
