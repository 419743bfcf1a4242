#include "ops/attention_sums.h"

#include "ops/attention.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> AttentionSumsOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  const Shape& qkv = ins[0].shape;
  const TensorDesc out = AttentionOp().infer(ins)[0];
  return {out, {accumulator_dtype(out.dtype), {qkv[0], qkv[3], qkv[1]}}};
}

int64_t AttentionSumsOp::reduction_length(DescSpan ins) const {
  return AttentionOp().reduction_length(ins);
}

double AttentionSumsOp::flops(DescSpan ins, DescSpan outs) const {
  return AttentionOp().flops(ins, outs);
}

std::vector<TensorDesc> AttentionSumsGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 4);
  const std::vector<TensorDesc> kept = AttentionSumsOp().infer(ins.first(1));
  for (size_t i = 0; i < kept.size(); ++i) expect_same(*this, kept[i], ins[i + 1]);
  expect_same(*this, kept[0], {kept[0].dtype, ins[3].shape});
  return {ins[0]};
}

int64_t AttentionSumsGradOp::reduction_length(DescSpan ins) const {
  return AttentionOp().reduction_length(ins.first(1));
}

double AttentionSumsGradOp::flops(DescSpan ins, DescSpan outs) const {
  const TensorDesc forward[] = {ins[0], ins[3]};
  return AttentionGradOp().flops(forward, outs);
}

}  // namespace vitrail
