#include "ops/average.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> AverageOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {ins[0]};
}

double AverageOp::flops(DescSpan, DescSpan outs) const {
  return 2.0 * static_cast<double>(outs[0].elems());
}

}  // namespace vitrail
