#include "ops/scale.h"

#include "graph/grad.h"
#include "ops/bias.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> ScaleOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_suffix(*this, ins[0].shape, ins[1].shape);
  return {ins[0]};
}

void ScaleOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<ScaleOp>({r.dout(), r.in(1)}, "dx"));
  if (r.wants(1)) r.give(1, r.add<ScaleDwOp>({r.in(0), r.dout()}, "dw", r.desc(r.in(1)).shape.rank()));
}

std::vector<TensorDesc> ScaleDwOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  return SumRowsOp(kept_rank_).infer(ins.first(1));
}

double ScaleDwOp::flops(DescSpan ins, DescSpan) const {
  return 2.0 * static_cast<double>(ins[0].elems());
}

int64_t ScaleDwOp::reduction_length(DescSpan ins) const {
  return ins[0].elems() / infer(ins)[0].elems();
}

}  // namespace vitrail
