// The linear of gemm.h with weights that are not packed, by a library's sgemm, called single-threaded on the
// same fixed tiles from our own pool. It serves weights that change (training), and as a yardstick.
#pragma once

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/onednn.h"

namespace vitrail::cpu {

ScratchNeed library_linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool norm);

// args.packed is unused; w is row-major [n, k] with row stride k. Throws Error(kDevice) when the library is
// missing.
void parallel_library_linear(const CpuContext& context, const GemmLibrary& library, const LinearArgs& args,
                             const float* w);

}  // namespace vitrail::cpu
