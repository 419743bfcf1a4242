// The CPU drivers of the backward pass: gradients of products, attention, norms and sums over rows, spread
// over a thread pool on tiles that follow from shapes alone. Used by the CPU backend's kernel table; knows
// raw pointers and strides, not ops.
#pragma once

#include "backend/cpu/gemm.h"

namespace vitrail {

// dw[n, k] (+)= sum over m of dy[m, n] x[m, k], all contiguous. Rows go by chunks, each packed once for all
// tiles; with `add` the sum is finished before it is added, so it rounds as if the two were done in turn.
struct WeightGradArgs {
  const float *x = nullptr, *dy = nullptr;
  float* dw = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool add = false;
};
ScratchNeed weight_grad_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool add);
void parallel_weight_grad(const CpuContext& context, const WeightGradArgs& args);

// The same with the patches of pictures as x; patches.epilogue, packed and out are not read.
ScratchNeed patch_weight_grad_scratch(const IsaKernels& isa, const PatchEmbedArgs& patches, bool add);
void parallel_patch_weight_grad(const CpuContext& context, const PatchEmbedArgs& patches, const float* dy,
                                float* dw, bool add);

// args.c = act'(x) * (a w^T), x[m, n] contiguous: the gradient of a product, and of the gelu before it, while
// a tile of it is in cache. Scratch as for the product; norm and epilogue are not read.
void parallel_linear_activate_grad(const CpuContext& context, const LinearArgs& args, Activation act,
                                   const float* x);

// dq, dk, dv with the strides of q, k, v; dout with those of the forward product's out, which is not read.
struct AttentionGradArgs {
  AttentionArgs forward;
  const float* dout = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
};
ScratchNeed attention_grad_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size);
void parallel_attention_grad(const CpuContext& context, const AttentionGradArgs& args);

// out[width] (+)= sum over rows of x, of x * y when y is not null. `stride` elements between rows.
struct RowSumArgs {
  const float *x = nullptr, *y = nullptr;
  int64_t stride = 0, rows = 0, width = 0;
  float* out = nullptr;
  bool add = false;
};
ScratchNeed row_sum_scratch(int64_t rows, int64_t width);
void parallel_row_sum(const CpuContext& context, const RowSumArgs& args);

// dx, and the parameters' gradients unless args.dgamma is null (written, not added to).
ScratchNeed layernorm_grad_scratch(int64_t rows, int64_t width, bool parameters);
void parallel_layernorm_grad(const CpuContext& context, const NormGradRows& args);

// Layernorm over the head size of the q and k parts of packed [tokens, 3, heads, head_size]; dv passes.
// parameters: gradients of q weight, q bias, k weight, k bias; null: not wanted.
struct QkNormGradArgs {
  const float *qkv = nullptr, *dy = nullptr, *gamma[2] = {};
  float *dqkv = nullptr, *parameters[4] = {};
  int64_t tokens = 0, heads = 0, head_size = 0;
  float eps = 0;
};
ScratchNeed qk_norm_grad_scratch(int64_t tokens, int64_t head_size);
void parallel_qk_norm_grad(const CpuContext& context, const QkNormGradArgs& args);

}  // namespace vitrail
