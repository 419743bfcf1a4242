// The product of gemm.h on weights that are not packed, by OpenBLAS: sgemm called single-threaded on the
// same fixed tiles from our own pool. For weights that change (training), and as a yardstick.
// OpenBLAS is opened at first use: linked, it would cost every start of the program its threads and buffers.
#pragma once

#include <string>

#include "backend/cpu/gemm.h"

namespace vitrail {

// Empty when OpenBLAS can be called, else why not. The first call opens the library.
const std::string& blas_missing_reason();

ScratchNeed blas_linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool norm);

// args.packed is unused; w is row-major [n, k] with row stride k. Refuses (kind device) without OpenBLAS.
void parallel_blas_linear(const CpuLane& lane, const LinearArgs& args, const float* w);

}  // namespace vitrail
