#include "ops/softmax.h"

#include "graph/grad.h"
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

void SoftmaxOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<SoftmaxGradOp>({r.out(), r.dout()}, "dx"));
}

std::vector<TensorDesc> SoftmaxGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {ins[0]};
}

double SoftmaxGradOp::flops(DescSpan, DescSpan outs) const {
  return 4.0 * static_cast<double>(outs[0].elems());
}

}  // namespace vitrail
