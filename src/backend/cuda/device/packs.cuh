// Eight elements in the type they have in memory, loaded separately from their conversion to floats: a kernel
// first issues all the loads it needs, then waits once, whatever the types.
#pragma once

#include "backend/cuda/device/elements.cuh"

namespace vitrail::cuda {

struct Pack {
  uint4 low, high;  // high: for f32 only
};

// Loads eight elements from element i on, a multiple of 8; the operand starts on 16 bytes.
__device__ inline Pack fetch(const Elements& from, int64_t i) {
  const bool wide = from.dtype == DType::kF32;
  const uint4* at = reinterpret_cast<const uint4*>(static_cast<const char*>(from.data) + i * (wide ? 4 : 2));
  Pack pack;
  pack.low = at[0];
  if (wide) pack.high = at[1];
  return pack;
}

__device__ inline void unpack(const Pack& pack, DType dtype, float (&v)[8]) {
  const uint32_t words[8] = {pack.low.x,  pack.low.y,  pack.low.z,  pack.low.w,
                             pack.high.x, pack.high.y, pack.high.z, pack.high.w};
  if (dtype == DType::kF32) {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = __uint_as_float(words[e]);
  } else if (dtype == DType::kBF16) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      v[2 * w] = __uint_as_float(words[w] << 16);
      v[2 * w + 1] = __uint_as_float(words[w] & 0xFFFF0000u);
    }
  } else {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float2 pair = __half22float2(reinterpret_cast<const __half2&>(words[w]));
      v[2 * w] = pair.x, v[2 * w + 1] = pair.y;
    }
  }
}

}  // namespace vitrail::cuda
