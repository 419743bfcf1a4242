// Sums and maxima over a few lanes of a warp or over a block, in the same order every time.
#pragma once

namespace vitrail::cuda {

// The sum over `lanes` neighbouring threads, a power of two; all threads of the warp must call it.
__device__ inline float lanes_sum(float value, int lanes = 32) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  return value;
}

__device__ inline float lanes_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, offset));
  return value;
}

// Combines a value over a block of kThreads threads, each of which gets the result.
template <int kThreads, typename Join>
__device__ float block_join(float warp_value, Join join) {
  __shared__ float warps[kThreads / 32];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = warp_value;
  __syncthreads();
  float value = warps[0];
  for (int w = 1; w < kThreads / 32; ++w) value = join(value, warps[w]);
  __syncthreads();
  return value;
}

template <int kThreads>
__device__ float block_sum(float value) {
  return block_join<kThreads>(lanes_sum(value), [](float a, float b) { return a + b; });
}
template <int kThreads>
__device__ float block_max(float value) {
  return block_join<kThreads>(lanes_max(value), [](float a, float b) { return fmaxf(a, b); });
}

}  // namespace vitrail::cuda
