#include "ops/cross_entropy.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> CrossEntropyOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_last(*this, ins[0].shape, 'K');
  expect_same(*this, ins[0], ins[1]);
  return {{ins[0].dtype, {ins[0].shape[0]}}};
}

void CrossEntropyOp::grad(GradRecorder& r) const {
  VT_CHECK(!r.wants(1), "cross_entropy: targets take no gradient");
  if (r.wants(0)) r.give(0, r.add<CrossEntropyGradOp>({r.in(0), r.in(1), r.dout()}, "dx", loss_));
}

double CrossEntropyOp::flops(DescSpan ins, DescSpan) const {
  return 8.0 * static_cast<double>(ins[0].elems());
}

std::vector<TensorDesc> CrossEntropyGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 3);
  expect_same(*this, ins[0], ins[1]);
  expect_same(*this, {ins[0].dtype, {ins[0].shape[0]}}, ins[2]);
  return {ins[0]};
}

double CrossEntropyGradOp::flops(DescSpan ins, DescSpan) const {
  return 8.0 * static_cast<double>(ins[0].elems());
}

std::vector<TensorDesc> LossSumOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 3);
  expect_same(*this, ins[0], {DType::kF64, ins[1].shape});
  expect_same(*this, ins[1], ins[2]);
  return {};
}

double LossSumOp::flops(DescSpan ins, DescSpan) const {
  return 2.0 * static_cast<double>(ins[0].elems());
}

}  // namespace vitrail
