// The measured peak of a GPU in arithmetic and in memory bandwidth: the yardstick of bench, profile and plan,
// like that of backend/cpu.
#pragma once

#include <string>

#include "backend/device.h"

namespace vitrail {

// GFLOP/s of a GEMM in type `name` (f32, tf32, bf16, f16, fp8), as large as the free memory allows; throws
// Error(kMemory) where it allows none, Error(kDevice) for a type the GPU lacks. The measurement takes about a
// tenth of a second.
double measure_cuda_peak_gflops(Device& device, const std::string& name);

// GB/s of a copy in the GPU's memory; bytes read and bytes written are both counted.
double measure_cuda_copy_gbps(Device& device);

}  // namespace vitrail
