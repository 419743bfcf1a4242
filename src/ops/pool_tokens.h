// Pooling of tokens [B N D] to one vector per image [B D]: one token, or the mean of all from `first` on; and
// DropTokens, which keeps the tokens from `first` on. Tokens are counted in the whole value: of a part of N,
// the pooled result is this part's share of the sum.
#pragma once

#include "graph/op.h"

namespace vitrail {

// Holds what the six ops share: the number of one token and, but for the mean, no arithmetic.
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

// Says which tokens of a range [first, end) of the whole value lie in a part, counted from the part's start.
struct HeldTokens {
  int64_t first = 0, count = 0;
};
HeldTokens held_tokens(const Dim& part, int64_t first, int64_t end);

class SelectTokenOp : public TokenOp {
 public:
  explicit SelectTokenOp(int64_t index) : TokenOp("index", index) {}

  static constexpr std::string_view kKind = "select_token";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"S"}; }

  int64_t index() const { return token(); }
  HeldTokens held(const Dim& tokens) const { return held_tokens(tokens, index(), index() + 1); }
};

class MeanTokensOp : public TokenOp {
 public:
  explicit MeanTokensOp(int64_t first) : TokenOp("first", first) {}

  static constexpr std::string_view kKind = "mean_tokens";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].shape[1].local; }
  double flops(DescSpan ins, DescSpan outs) const override;

  int64_t first() const { return token(); }
  HeldTokens held(const Dim& tokens) const { return held_tokens(tokens, first(), tokens.extent); }
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

// A gradient that makes tokens of none, [B D] -> [B N D]. They are the op's own: who makes a part of them has
// an op of that part.
class MadeTokensOp : public TokenOp {
 public:
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NS"}; }

  const Dim& tokens() const { return tokens_; }
  virtual OpPtr with_tokens(const Dim& part) const = 0;

 protected:
  MadeTokensOp(const char* label, int64_t token, const Dim& tokens)
      : TokenOp(label, token), tokens_(tokens) {}

 private:
  Dim tokens_;
};

// dy [B D] as the gradient of token `index`, zero for the others: [B N D].
class SelectTokenGradOp : public MadeTokensOp {
 public:
  SelectTokenGradOp(int64_t index, const Dim& tokens) : MadeTokensOp("index", index, tokens) {}

  static constexpr std::string_view kKind = "select_token_grad";
  std::string_view kind() const override { return kKind; }
  OpPtr with_tokens(const Dim& part) const override;

  HeldTokens held() const { return held_tokens(tokens(), token(), token() + 1); }
};

// dy [B D] shared out to the tokens from `first` on: [B N D].
class MeanTokensGradOp : public MadeTokensOp {
 public:
  MeanTokensGradOp(int64_t first, const Dim& tokens) : MadeTokensOp("first", first, tokens) {}

  static constexpr std::string_view kKind = "mean_tokens_grad";
  std::string_view kind() const override { return kKind; }
  OpPtr with_tokens(const Dim& part) const override;

  HeldTokens held() const { return held_tokens(tokens(), token(), tokens().extent); }
  int64_t averaged() const { return tokens().extent - token(); }  // tokens, of the whole value
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
