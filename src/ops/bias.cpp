#include "ops/bias.h"

#include "graph/grad.h"
#include "ops/expect.h"

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

std::vector<TensorDesc> SumRowsOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  const Shape& x = ins[0].shape;
  VT_CHECK(kept_rank_ <= x.rank(), "sum_rows: %s has no %zu dims to keep", to_string(x).c_str(), kept_rank_);
  return {{accumulator_dtype(ins[0].dtype),
           Shape(std::vector<Dim>(x.end() - static_cast<std::ptrdiff_t>(kept_rank_), x.end()))}};
}

double SumRowsOp::flops(DescSpan ins, DescSpan) const {
  return static_cast<double>(ins[0].elems());
}

int64_t SumRowsOp::reduction_length(DescSpan ins) const {
  return ins[0].elems() / infer(ins)[0].elems();
}

}  // namespace vitrail
