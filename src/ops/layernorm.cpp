#include "ops/layernorm.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> LayernormOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 3);
  expect_last(*this, ins[0].shape, 'D');
  for (size_t i : {1u, 2u}) expect_suffix(*this, ins[0].shape, ins[i].shape);
  return {ins[0]};
}

double LayernormOp::flops(DescSpan, DescSpan outs) const {
  return 8.0 * static_cast<double>(outs[0].elems());
}

std::string LayernormOp::attributes() const {
  return strf("eps=%g", eps_);
}

}  // namespace vitrail
