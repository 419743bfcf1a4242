// Max pooling of tokens [B N D] to one vector per image [B D]: the largest value of each column from token
// `first` on.
#pragma once

#include "graph/op.h"

namespace vitrail {

class MaxTokensOp : public Op {
 public:
  explicit MaxTokensOp(int64_t first) : first_(first) {}

  static constexpr std::string_view kKind = "max_tokens";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"N"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return strf("first=%lld", static_cast<long long>(first_)); }

  int64_t first() const { return first_; }

 private:
  int64_t first_;
};

// Computes the gradient from x and dy [B D]: dy goes to the largest token, in equal shares where several are.
class MaxTokensGradOp : public Op {
 public:
  explicit MaxTokensGradOp(int64_t first) : first_(first) {}

  static constexpr std::string_view kKind = "max_tokens_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"N"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return strf("first=%lld", static_cast<long long>(first_)); }

  int64_t first() const { return first_; }

 private:
  int64_t first_;
};

}  // namespace vitrail
