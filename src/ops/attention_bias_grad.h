// The gradient of attention together with that of the bias which was added to its packed qkv: the sums over
// all tokens come out of the kernel that makes what they sum. The pass join_row_sums puts it in place of the
// two where the backend has a kernel for it; all tokens are queries.
#pragma once

#include "ops/attention.h"
#include "ops/bias.h"

namespace vitrail {

// Inputs: qkv, dout. Outputs: dqkv, and its sums [T H E].
class AttentionBiasGradOp : public Op {
 public:
  static constexpr std::string_view kKind = "attention_bias_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override {
    const std::vector<TensorDesc> dqkv = AttentionGradOp().infer(ins);
    return {dqkv[0], SumRowsOp(3).infer(dqkv)[0]};
  }
  DimsRule dims() const override { return AttentionGradOp().dims(); }
  int64_t reduction_length(DescSpan ins) const override {
    return std::max(AttentionGradOp().reduction_length(ins), SumRowsOp(3).reduction_length(ins.first(1)));
  }
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  double flops(DescSpan ins, DescSpan outs) const override {
    return AttentionGradOp().flops(ins, outs.first(1)) + static_cast<double>(outs[0].elems());
  }
};

}  // namespace vitrail
