// Pooling of tokens [B N D] to one vector per image [B D]: one token, or the mean of all from `first` on; and
// DropTokens, which keeps the tokens from `first` on.
#pragma once

#include "graph/op.h"

namespace vitrail {

// What the six ops share: the number of one token and, but for the mean, no arithmetic.
class TokenOp : public Op {
 public:
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::string attributes() const override { return strf("%s=%lld", label_, static_cast<long long>(token_)); }

 protected:
  TokenOp(const char* label, int64_t token) : label_(label), token_(token) {}
  int64_t token() const { return token_; }

 private:
  const char* label_;
  int64_t token_;
};

class SelectTokenOp : public TokenOp {
 public:
  explicit SelectTokenOp(int64_t index) : TokenOp("index", index) {}

  static constexpr std::string_view kKind = "select_token";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"NS"}; }

  int64_t index() const { return token(); }
};

class MeanTokensOp : public TokenOp {
 public:
  explicit MeanTokensOp(int64_t first) : TokenOp("first", first) {}

  static constexpr std::string_view kKind = "mean_tokens";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"N"}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].shape[1].local; }
  double flops(DescSpan ins, DescSpan outs) const override;

  int64_t first() const { return token(); }
};

class DropTokensOp : public TokenOp {
 public:
  explicit DropTokensOp(int64_t first) : TokenOp("first", first) {}

  static constexpr std::string_view kKind = "drop_tokens";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"N"}; }

  int64_t first() const { return token(); }
};

// dy [B D] as the gradient of token `index`, zero for the others: [B N D].
class SelectTokenGradOp : public TokenOp {
 public:
  SelectTokenGradOp(int64_t index, Dim tokens) : TokenOp("index", index), tokens_(tokens) {}

  static constexpr std::string_view kKind = "select_token_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NS"}; }

  int64_t index() const { return token(); }

 private:
  Dim tokens_;
};

// dy [B D] shared out to the tokens from `first` on: [B N D].
class MeanTokensGradOp : public TokenOp {
 public:
  MeanTokensGradOp(int64_t first, Dim tokens) : TokenOp("first", first), tokens_(tokens) {}

  static constexpr std::string_view kKind = "mean_tokens_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NS"}; }

  int64_t first() const { return token(); }

 private:
  Dim tokens_;
};

// dy [B N D] with zeros for the `first` tokens that were dropped before it.
class DropTokensGradOp : public TokenOp {
 public:
  explicit DropTokensGradOp(int64_t first) : TokenOp("first", first) {}

  static constexpr std::string_view kKind = "drop_tokens_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"N"}; }

  int64_t first() const { return token(); }
};

}  // namespace vitrail
