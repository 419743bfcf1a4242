// Attention without weights: tokens x [B N D] are queries, keys and values themselves, each head a slice of D
// (timm's pooling by refined patches). Of every head: softmax(x x^T / sqrt(E)) x, E = D / heads.
#pragma once

#include "ops/attention.h"

namespace vitrail {

// Holds what the op and its gradient share.
class TokenHeadsOp : public Op {
 public:
  DimsRule dims() const override { return {"ND"}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return strf("heads=%lld", static_cast<long long>(heads_)); }

  // Returns where the rows of a head lie in x; those of queries, keys, values and the result lie alike.
  AttentionGeometry geometry(const Shape& x) const;

 protected:
  TokenHeadsOp(int64_t heads, double passes) : heads_(heads), passes_(passes) {}
  void expect_heads(const TensorDesc& x) const;

  int64_t heads_;

 private:
  double passes_;  // over the scores, by two products each
};

class SelfAttentionOp : public TokenHeadsOp {
 public:
  explicit SelfAttentionOp(int64_t heads) : TokenHeadsOp(heads, 1) {}

  static constexpr std::string_view kKind = "self_attention";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
};

// Computes dx from x and dy, both [B N D].
class SelfAttentionGradOp : public TokenHeadsOp {
 public:
  explicit SelfAttentionGradOp(int64_t heads) : TokenHeadsOp(heads, 2.5) {}

  static constexpr std::string_view kKind = "self_attention_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
};

}  // namespace vitrail
