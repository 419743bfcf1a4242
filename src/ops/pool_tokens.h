// Pooling of tokens [B N D] to one vector per image [B D]: one token, or the mean of all from `first` on; and
// DropTokens, which keeps the tokens from `first` on.
#pragma once

#include "graph/op.h"

namespace vitrail {

class SelectTokenOp : public Op {
 public:
  explicit SelectTokenOp(int64_t index) : index_(index) {}

  static constexpr std::string_view kKind = "select_token";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"NS"}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::string attributes() const override { return strf("index=%lld", static_cast<long long>(index_)); }

  int64_t index() const { return index_; }

 private:
  int64_t index_;
};

class MeanTokensOp : public Op {
 public:
  explicit MeanTokensOp(int64_t first) : first_(first) {}

  static constexpr std::string_view kKind = "mean_tokens";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"N"}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].shape[1].local; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return strf("first=%lld", static_cast<long long>(first_)); }

  int64_t first() const { return first_; }

 private:
  int64_t first_;
};

class DropTokensOp : public Op {
 public:
  explicit DropTokensOp(int64_t first) : first_(first) {}

  static constexpr std::string_view kKind = "drop_tokens";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"N"}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::string attributes() const override { return strf("first=%lld", static_cast<long long>(first_)); }

  int64_t first() const { return first_; }

 private:
  int64_t first_;
};

// Turns dy [B D] into the gradient of token `index`, zero for the others: [B N D].
class SelectTokenGradOp : public Op {
 public:
  SelectTokenGradOp(int64_t index, Dim tokens) : index_(index), tokens_(tokens) {}

  static constexpr std::string_view kKind = "select_token_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NS"}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::string attributes() const override { return strf("index=%lld", static_cast<long long>(index_)); }

  int64_t index() const { return index_; }

 private:
  int64_t index_;
  Dim tokens_;
};

// Distributes dy [B D] equally over the tokens from `first` on: [B N D].
class MeanTokensGradOp : public Op {
 public:
  MeanTokensGradOp(int64_t first, Dim tokens) : first_(first), tokens_(tokens) {}

  static constexpr std::string_view kKind = "mean_tokens_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NS"}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::string attributes() const override { return strf("first=%lld", static_cast<long long>(first_)); }

  int64_t first() const { return first_; }

 private:
  int64_t first_;
  Dim tokens_;
};

// Turns dy into [B N D] with zeros for the `first` tokens that were dropped.
class DropTokensGradOp : public Op {
 public:
  explicit DropTokensGradOp(int64_t first) : first_(first) {}

  static constexpr std::string_view kKind = "drop_tokens_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"N"}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  std::string attributes() const override { return strf("first=%lld", static_cast<long long>(first_)); }

  int64_t first() const { return first_; }

 private:
  int64_t first_;
};

}  // namespace vitrail
