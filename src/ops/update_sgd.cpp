#include "ops/update_sgd.h"

namespace vitrail {

std::vector<TensorDesc> SgdUpdateOp::infer(DescSpan ins) const {
  expect_update(*this, ins, momentum_ > 0 ? 1 : 0);
  return {};
}

double SgdUpdateOp::flops(DescSpan ins, DescSpan) const {
  return (momentum_ > 0 ? 7.0 : 5.0) * static_cast<double>(ins[0].elems());
}

std::string SgdUpdateOp::attributes() const {
  return scale_.text() + strf(" momentum=%g%s", momentum_, nesterov_ ? " nesterov" : "");
}

}  // namespace vitrail
