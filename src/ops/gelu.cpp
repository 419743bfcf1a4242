#include "ops/gelu.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> GeluOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {ins[0]};
}

double GeluOp::flops(DescSpan, DescSpan outs) const {
  return 10.0 * static_cast<double>(outs[0].elems());
}

}  // namespace vitrail
