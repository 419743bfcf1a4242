// The most a GPU computes and moves, measured: the yardstick of bench, profile and plan, like backend/cpu's.
#pragma once

#include "backend/device.h"
#include "tensor/dtype.h"

namespace vitrail {

// Random values in [-1, 1), the same few over and over: zeros would need less power and run faster.
void fill_for_timing(Device& device, std::byte* target, DType dtype, size_t elems);

// GFLOP/s of a large product of matrices in f32, bf16 or f16. Takes about a tenth of a second.
double measure_cuda_peak_gflops(Device& device, DType dtype);

// GB/s of copying in the card's memory, bytes read and bytes written both counted.
double measure_cuda_copy_gbps(Device& device);

}  // namespace vitrail
