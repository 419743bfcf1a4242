#include "ops/bias.h"

#include "graph/grad.h"
#include "ops/expect.h"
#include "ops/sum_rows.h"

namespace vitrail {

std::vector<TensorDesc> BiasOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_suffix(*this, ins[0].shape, ins[1].shape);
  return {ins[0]};
}

void BiasOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.dout());
  if (r.wants(1)) r.give(1, r.add<SumRowsOp>({r.dout()}, "db", r.desc(r.in(1)).shape.rank()));
}

}  // namespace vitrail
