// Matrix product by names: contracts the dims that x and w share, which are the last ones of both, and
// keeps the others: x [B N D], w [F D] -> [B N F]; w [T H E D] -> [B N T H E]; x [B N H E], w [D H E] -> [B N
// D].
#pragma once

#include "graph/op.h"

namespace vitrail {

class LinearOp : public Op {
 public:
  std::string_view kind() const override { return "linear"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  double flops(DescSpan ins, DescSpan outs) const override;
};

// The product as plain matrices: out[m, n] = x[m, k] . w[n, k].
struct MatmulExtents {
  int64_t m, n, k;
};
MatmulExtents linear_extents(const Shape& x, const Shape& w);

}  // namespace vitrail
