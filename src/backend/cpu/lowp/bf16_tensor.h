// GEMMs of bf16 tensors and their gradients by dot-product instructions, spread over a thread pool on tiles
// that follow from shapes alone. Nothing is widened: the weight, or the activation in its place, is packed on
// every call. Knows raw pointers, not ops.
#pragma once

#include "backend/cpu/gemm/gemm.h"

namespace vitrail::cpu {

inline constexpr int64_t kBf16Depth = 32;  // k is a multiple of this where rows are read in place

// c[m, n] = residual + bf16(bf16(a[m, k] . w) + bias), contiguous; w is stored as [n, k], or as [k, n].
struct Bf16LinearArgs {
  const uint16_t *a = nullptr, *w = nullptr;
  bool w_by_inputs = false;  // as [k, n]
  int64_t m = 0, n = 0, k = 0;
  const float *bias = nullptr, *residual = nullptr;  // null: none
  uint16_t* out = nullptr;                           // null: in f32, to wide_out
  float* wide_out = nullptr;
};
ScratchNeed bf16_linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k);
void parallel_bf16_linear(const CpuContext& context, const Bf16LinearArgs& args);

// dw[n, k] (+)= sum over m of dy[m, n] x[m, k], with the chunks and sums of parallel_weight_grad.
struct Bf16WeightGradArgs {
  const uint16_t *x = nullptr, *dy = nullptr;
  float* dw = nullptr;
  int64_t m = 0, n = 0, k = 0;
  bool add = false;
};
ScratchNeed bf16_weight_grad_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool add);
void parallel_bf16_weight_grad(const CpuContext& context, const Bf16WeightGradArgs& args);

}  // namespace vitrail::cpu
