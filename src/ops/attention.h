// Softmax attention per head: softmax(q k^T / sqrt(E)) v. The input is either packed qkv [B N T3 H E], or a
// learned query that all images share, q [S H E], with kv [B M T2 H E] (attention pooling). Output [B N H E]
// ([B S H E] for a pooling query). With QueryScope::kClassToken the class token is the only query: output [B
// H E]. AttentionProbsOp returns the softmax weights [B H N M] of packed qkv, for explanations.
#pragma once

#include <type_traits>

#include "graph/op.h"

namespace vitrail {

enum class QueryScope { kAllTokens, kClassToken };  // which of the packed tokens are queries

class AttentionOp : public Op {
 public:
  explicit AttentionOp(QueryScope queries = QueryScope::kAllTokens) : queries_(queries) {}

  static constexpr std::string_view kKind = "attention";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"NMSTE"}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;

  QueryScope queries() const { return queries_; }

 private:
  QueryScope queries_;
};

class AttentionProbsOp : public Op {
 public:
  static constexpr std::string_view kKind = "attention_probs";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NMTE"}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
};

// Says where queries, keys and values of (batch b, head h) lie, in elements: row i at base + b*batch + i*row
// + h*head.
struct AttentionStrides {
  int64_t base, batch, row, head;
};
struct AttentionGeometry {
  int64_t batch, heads, queries, keys, head_size;
  AttentionStrides q, k, v, out;  // q in input 0; k and v in the last input
};
// Returns the geometry of one of the three attention ops from the inputs of the forward one.
AttentionGeometry attention_geometry(const Op& op, DescSpan forward_ins);

// The FLOPs of class-token attention computed from the tokens themselves, x [B N D]: the linear with the
// weight [T H E D] that makes queries, keys and values is then computed for one token instead of all, since q
// . (W x) = (W^T q) . x and the weighted sum of the values W x is W times that of the x.
double first_attention_flops(const TensorDesc& qkv, const TensorDesc& weight);

// The gradient of attention. Inputs as the forward op's, then dout; outputs dqkv (dq is zero for tokens that
// were no queries), or dq and dkv of a pooling query (dq summed over the images). The softmax weights are
// recomputed.
class AttentionGradOp : public Op {
 public:
  explicit AttentionGradOp(QueryScope queries = QueryScope::kAllTokens) : queries_(queries) {}

  static constexpr std::string_view kKind = "attention_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NMSTE"}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;

  QueryScope queries() const { return queries_; }

 private:
  QueryScope queries_;
};

// Returns whether an op with so many inputs is attention (or its gradient) of packed tokens, all queries.
template <typename Attention>
bool is_packed(const Op& op, size_t inputs) {
  static_assert(std::is_same_v<Attention, AttentionOp> || std::is_same_v<Attention, AttentionGradOp>);
  const auto* attention = dynamic_cast<const Attention*>(&op);
  const size_t packed = std::is_same_v<Attention, AttentionOp> ? 1 : 2;  // qkv; the gradient has dout, too
  return attention && attention->queries() == QueryScope::kAllTokens && inputs == packed;
}

}  // namespace vitrail
