#include "ops/gelu.h"

#include "graph/grad.h"
#include "ops/bias.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> GeluOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {ins[0]};
}

double GeluOp::flops(DescSpan, DescSpan outs) const {
  return 10.0 * static_cast<double>(outs[0].elems());
}

void GeluOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<GeluGradOp>({r.in(0), r.dout()}, "dx", tanh_form_));
}

std::vector<TensorDesc> GeluGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  if (!row_sums_) return {ins[0]};
  return {ins[0], SumRowsOp(1).infer(ins.first(1))[0]};
}

double GeluGradOp::flops(DescSpan, DescSpan outs) const {
  return 16.0 * static_cast<double>(outs[0].elems());
}

int64_t GeluGradOp::reduction_length(DescSpan ins) const {
  const std::vector<TensorDesc> outs = infer(ins);
  return outs.size() > 1 ? outs[0].elems() / outs[1].elems() : 1;
}

}  // namespace vitrail
