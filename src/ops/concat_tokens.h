// Puts learned tokens before the patches of every picture: prefixes [S D]..., then x [B N D] last among the
// inputs -> [B N+S.. D].
#pragma once

#include "graph/op.h"

namespace vitrail {

class ConcatTokensOp : public Op {
 public:
  std::string_view kind() const override { return "concat_tokens"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"NS"}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
};

// The gradient of one prefix: `count` tokens from `first` on, summed over the pictures. [B N D] -> [S D].
class SumTokensOp : public Op {
 public:
  SumTokensOp(int64_t first, int64_t count) : first_(first), count_(count) {}

  std::string_view kind() const override { return "sum_tokens"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NS", true}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return strf("first=%lld", static_cast<long long>(first_)); }

  int64_t first() const { return first_; }
  int64_t count() const { return count_; }

 private:
  int64_t first_, count_;
};

}  // namespace vitrail
