// Sums over the leading dims and keeps the last ones: the gradient of a bias or of positions.
// [B N D] -> [D] or [N D], in the accumulator's type.
#pragma once

#include "graph/op.h"

namespace vitrail {

class SumRowsOp : public Op {
 public:
  explicit SumRowsOp(size_t kept_rank) : kept_rank_(kept_rank) {}

  std::string_view kind() const override { return "sum_rows"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"", true}; }
  double flops(DescSpan ins, DescSpan outs) const override;

 private:
  size_t kept_rank_;
};

}  // namespace vitrail
