#include "ops/scale.h"

#include "graph/grad.h"
#include "ops/expect.h"
#include "ops/sum_rows.h"

namespace vitrail {

std::vector<TensorDesc> ScaleOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_suffix(*this, ins[0].shape, ins[1].shape);
  return {ins[0]};
}

void ScaleOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add(std::make_shared<ScaleOp>(), {r.dout(), r.in(1)}, "dx"));
  if (r.wants(1))
    r.give(1, r.add(std::make_shared<ScaleDwOp>(r.desc(r.in(1)).shape.rank()), {r.in(0), r.dout()}, "dw"));
}

std::vector<TensorDesc> ScaleDwOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  return SumRowsOp(kept_rank_).infer(ins.first(1));
}

double ScaleDwOp::flops(DescSpan ins, DescSpan) const {
  return 2.0 * static_cast<double>(ins[0].elems());
}

}  // namespace vitrail
