// Products in bf16, int8 or parts spread over a thread pool, the same for every arithmetic and instruction
// set: rows are prepared once, then tiles run on them. Used by launch_reduced.cpp; knows raw pointers, not
// ops.
#pragma once

#include "backend/cpu/gemm.h"

namespace vitrail {

// packed must hold kernels.packed_bytes(n, k); needs no scratch.
void parallel_reduced_pack(const CpuContext& context, const ReducedKernels& kernels, const float* w,
                           int64_t n, int64_t k, std::byte* packed);

// c = epilogue(norm(a) * w^T) as parallel_linear, w packed by parallel_reduced_pack; args.packed is not read.
ScratchNeed reduced_linear_scratch(const ReducedKernels& kernels, int64_t m, int64_t n, int64_t k, bool norm);
void parallel_reduced_linear(const CpuContext& context, const ReducedKernels& kernels, const LinearArgs& args,
                             const std::byte* packed);

}  // namespace vitrail
