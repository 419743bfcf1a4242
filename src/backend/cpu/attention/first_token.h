// Attention with the first token of each image as the only query, fused with the layernorm and the GEMM that
// make queries, keys and values. Knows raw pointers, not ops.
#pragma once

#include "backend/cpu/gemm/gemm.h"

namespace vitrail::cpu {

// out[b, h, :] = softmax over i of (scale * q_0 k_i) times v_i, where [q k v] = norm(x) * weight^T + bias: x
// [batch, tokens, width], weight [3 * heads * head_size, width] row-major, bias [3 * heads * head_size] or
// null.
struct FirstAttentionArgs {
  const float *x = nullptr, *weight = nullptr, *bias = nullptr;
  float* out = nullptr;
  int64_t batch = 0, tokens = 0, width = 0, heads = 0, head_size = 0;
  LinearNorm norm;
  float scale = 1;
};
ScratchNeed first_attention_scratch(const IsaKernels& isa, const FirstAttentionArgs& sizes, bool norm);
void parallel_first_attention(const CpuContext& context, const FirstAttentionArgs& args);

}  // namespace vitrail::cpu
