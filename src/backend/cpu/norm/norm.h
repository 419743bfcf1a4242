// Layernorm, softmax and their gradients spread over a thread pool. Rows are contiguous unless a stride is
// given; outputs may be the inputs. Knows raw pointers, not ops.
#pragma once

#include "backend/cpu/context.h"

namespace vitrail::cpu {

void parallel_layernorm(const CpuContext& context, const NormRows& args);
void parallel_softmax(const CpuContext& context, const float* x, int64_t rows, int64_t width, float* y);

// Computes dx, and the parameters' gradients unless args.dgamma is null (written, not added to).
ScratchNeed layernorm_grad_scratch(int64_t rows, int64_t width, bool parameters);
void parallel_layernorm_grad(const CpuContext& context, const NormGradRows& args);

// The gradient of the layernorm over the head size of the q and k parts of packed [tokens, 3, heads,
// head_size]; dv is copied. `parameters` are the gradients of q weight, q bias, k weight and k bias; null:
// not wanted.
struct QkNormGradArgs {
  const float *qkv = nullptr, *dy = nullptr, *gamma[2] = {};
  float *dqkv = nullptr, *parameters[4] = {};
  int64_t tokens = 0, heads = 0, head_size = 0;
  float eps = 0;
};

ScratchNeed qk_norm_grad_scratch(int64_t tokens, int64_t head_size);
void parallel_qk_norm_grad(const CpuContext& context, const QkNormGradArgs& args);

}  // namespace vitrail::cpu
