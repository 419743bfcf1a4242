#include "ops/tanh.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> TanhOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {ins[0]};
}

void TanhOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<TanhGradOp>({r.out(), r.dout()}, "dx"));
}

std::vector<TensorDesc> TanhGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {ins[0]};
}

double TanhGradOp::flops(DescSpan, DescSpan outs) const {
  return 3.0 * static_cast<double>(outs[0].elems());
}

}  // namespace vitrail
