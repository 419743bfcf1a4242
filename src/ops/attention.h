// Softmax attention per head: softmax(q k^T / sqrt(E)) v. Either packed, qkv [B N T3 H E], or a query that
// all pictures share, q [S H E] and kv [B M T2 H E] (attention pooling). Output [B N H E] ([B S H E] for a
// probe). AttentionProbsOp gives the weights themselves, [B H N M], for packed qkv: what `explain` looks at.
#pragma once

#include "graph/op.h"

namespace vitrail {

class AttentionOp : public Op {
 public:
  std::string_view kind() const override { return "attention"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"NMSTE"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
};

class AttentionProbsOp : public Op {
 public:
  std::string_view kind() const override { return "attention_probs"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NMTE"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
};

// Where queries, keys and values of (batch b, head h) lie, in elements: row i at base + b*batch + i*row +
// h*head.
struct AttentionStrides {
  int64_t base, batch, row, head;
};
struct AttentionGeometry {
  int64_t batch, heads, queries, keys, head_size;
  AttentionStrides q, k, v, out;  // q in input 0; k and v in the last input
};
AttentionGeometry attention_geometry(DescSpan ins);

// Inputs as the forward op's, then dout; outputs dqkv, or dq and dkv of a probe (dq summed over the
// pictures). The weights are computed again.
class AttentionGradOp : public Op {
 public:
  std::string_view kind() const override { return "attention_grad"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NMSTE"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
};

}  // namespace vitrail
