// GEMMs in bf16, int8 or bf16 parts spread over a thread pool, the same for every arithmetic and instruction
// set: rows are prepared once, then tiles are computed from them. Knows raw pointers, not ops.
#pragma once

#include "backend/cpu/gemm/gemm.h"

namespace vitrail::cpu {

// `packed` must hold kernels.packed_bytes(n, k); no scratch is needed.
void parallel_lowp_pack(const CpuContext& context, const LowpKernels& kernels, const float* w, int64_t n,
                        int64_t k, std::byte* packed);

// c = epilogue(norm(a) * w^T) as parallel_linear computes it, where w was packed by parallel_lowp_pack;
// args.packed is not read.
ScratchNeed lowp_linear_scratch(const LowpKernels& kernels, int64_t m, int64_t n, int64_t k, bool norm);
void parallel_lowp_linear(const CpuContext& context, const LowpKernels& kernels, const LinearArgs& args,
                          const std::byte* packed);

}  // namespace vitrail::cpu
