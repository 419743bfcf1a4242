// Attention, its weights and its gradient spread over a thread pool on tiles that follow from shapes alone.
// Knows raw pointers and strides, not ops.
#pragma once

#include "backend/cpu/context.h"

namespace vitrail::cpu {

// out[b, i, h, :] = softmax(scale * q k^T) v. Strides are in elements; packed qkv [B, N, 3, H, E] has token
// stride 3*H*E, image stride N*3*H*E, head stride E, with k = q + H*E and v = q + 2*H*E.
struct AttentionView {
  int64_t image = 0, token = 0, head = 0;  // strides
};

struct AttentionArgs {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  AttentionView q_strides, k_strides, v_strides;
  float* out = nullptr;
  AttentionView out_strides;
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, head_size = 0;
  float scale = 1;
};

ScratchNeed attention_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size);
void parallel_attention(const CpuContext& context, const AttentionArgs& args);
// The attention weights: out[b, h, i, j] = softmax over j of scale * q_i k_j, contiguous. args.v and
// out_strides are not read.
ScratchNeed attention_probs_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size);
void parallel_attention_probs(const CpuContext& context, const AttentionArgs& args);

// dq, dk and dv have the strides of q, k and v; dout has those of the forward attention's out, which is not
// read.
struct AttentionGradArgs {
  AttentionArgs forward;
  const float* dout = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

ScratchNeed attention_grad_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size);
void parallel_attention_grad(const CpuContext& context, const AttentionGradArgs& args);

}  // namespace vitrail::cpu
