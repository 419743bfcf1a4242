// Attention that keeps what its gradient needs. AttentionSumsOp returns, beside the output of AttentionOp,
// the base-2 logarithm of the sum of every query's exponentials, [B H N]; AttentionSumsGradOp reads both
// instead of computing them again. A pass makes the pair where the backend has kernels for it; packed qkv
// only, all tokens being queries.
#pragma once

#include "graph/op.h"

namespace vitrail {

class AttentionSumsOp : public Op {
 public:
  static constexpr std::string_view kKind = "attention_sums";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NTE"}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  double flops(DescSpan ins, DescSpan outs) const override;
};

// Inputs: qkv, the output, the logarithms of the sums, dout. Output: dqkv.
class AttentionSumsGradOp : public Op {
 public:
  static constexpr std::string_view kKind = "attention_sums_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NTE"}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  double flops(DescSpan ins, DescSpan outs) const override;
};

}  // namespace vitrail
