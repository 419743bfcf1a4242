// The most a GPU computes and moves, measured: the yardstick of bench, profile and plan, like backend/cpu's.
#pragma once

#include <string>

#include "backend/device.h"
#include "tensor/dtype.h"

namespace vitrail {

// Random values in [-1, 1), the same few over and over: zeros would need less power and run faster. Bytes are
// e4m3 codes.
void fill_for_timing(Device& device, std::byte* target, DType dtype, size_t elems);

// GFLOP/s of a GEMM of matrices in type `name` (f32, tf32, bf16, f16, fp8), as large as the free memory
// allows; Error(kMemory) where it allows none, Error(kDevice) for a type the GPU lacks. Takes about a tenth
// of a second.
double measure_cuda_peak_gflops(Device& device, const std::string& name);

// GB/s of copying in the GPU's memory, bytes read and bytes written both counted.
double measure_cuda_copy_gbps(Device& device);

}  // namespace vitrail
