// Combines one value of every thread of a block into one, always in the same order. For blocks of whole warps
// along x; every thread of the block must take part, and gets the result.
#pragma once

#include <cuda_runtime.h>

namespace vitrail::cuda {

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <typename T, typename Join>
__device__ T block_join(T value, Join join) {
  __shared__ T parts[32];
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) value = join(value, __shfl_xor_sync(0xFFFFFFFFu, value, apart));
  __syncthreads();  // the parts of an earlier join have been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) value = join(value, parts[warp]);
  return value;
}

}  // namespace vitrail::cuda
