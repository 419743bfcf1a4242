// Puts learned tokens before the patches of every image: prefixes [S D]..., then x [B N D] last among the
// inputs -> [B N+S.. D].
#pragma once

#include "graph/op.h"

namespace vitrail {

class ConcatTokensOp : public Op {
 public:
  static constexpr std::string_view kKind = "concat_tokens";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"NS"}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
};

// The gradient of one prefix: `count` tokens from `first` on, summed over the images. [B N D] -> [S D].
class SumTokensOp : public Op {
 public:
  SumTokensOp(int64_t first, int64_t count) : first_(first), count_(count) {}

  static constexpr std::string_view kKind = "sum_tokens";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NS", true}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].shape.local('B'); }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return strf("first=%lld", static_cast<long long>(first_)); }

  int64_t first() const { return first_; }
  int64_t count() const { return count_; }

 private:
  int64_t first_, count_;
};

}  // namespace vitrail
