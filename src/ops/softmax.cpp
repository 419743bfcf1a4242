#include "ops/softmax.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> SoftmaxOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  expect_last(*this, ins[0].shape, 'K');
  return {ins[0]};
}

double SoftmaxOp::flops(DescSpan, DescSpan outs) const {
  return 5.0 * static_cast<double>(outs[0].elems());
}

}  // namespace vitrail
