#include "ops/sum_rows.h"

#include "ops/expect.h"

namespace vitrail {

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
