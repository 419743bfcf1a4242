#include "ops/activate.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

ActivateOp::ActivateOp(ActKind act) : act_(act) {
  VT_CHECK(act != ActKind::kGelu, "the gelu is an op of its own");
}

std::vector<TensorDesc> ActivateOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {ins[0]};
}

double ActivateOp::flops(DescSpan, DescSpan outs) const {
  return 4.0 * static_cast<double>(outs[0].elems());
}

void ActivateOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<ActivateGradOp>({r.in(0), r.dout()}, "dx", act_));
}

std::vector<TensorDesc> ActivateGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {ins[0]};
}

double ActivateGradOp::flops(DescSpan, DescSpan outs) const {
  return 6.0 * static_cast<double>(outs[0].elems());
}

}  // namespace vitrail
