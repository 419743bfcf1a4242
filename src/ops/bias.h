// A bias, and the sum over rows that is its gradient.
#pragma once

#include "graph/op.h"

namespace vitrail {

// x plus a parameter that lacks x's leading dims: a bias [D], or positions [N D], added to [B N D].
class BiasOp : public Op {
 public:
  static constexpr std::string_view kKind = "bias";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {}; }
  int in_place_input() const override { return 0; }
};

// Sums over the leading dims and keeps the last ones: the gradient of a bias or of positions.
// [B N D] -> [D] or [N D], in the accumulator's type.
class SumRowsOp : public Op {
 public:
  explicit SumRowsOp(size_t kept_rank) : kept_rank_(kept_rank) {}

  static constexpr std::string_view kKind = "sum_rows";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"", true}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;

 private:
  size_t kept_rank_;
};

}  // namespace vitrail
