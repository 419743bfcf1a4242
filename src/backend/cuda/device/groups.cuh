// Neighbouring elements that one thread handles together: eight, or fewer where a value ends. The elements
// that are missing read as zero.
#pragma once

#include "backend/cuda/device/elements.cuh"

namespace vitrail::cuda {

inline constexpr int kGroup = 8;

struct Group {
  float v[kGroup];

  __device__ float& operator[](int i) { return v[i]; }
  __device__ float operator[](int i) const { return v[i]; }
};

// Elements [i, i + n) of x, i a multiple of 8.
__device__ __forceinline__ Group read_group(const Elements& x, int64_t i, int n) {
  Group group;
  if (n == kGroup) {
    x.get8(i, group.v);
  } else {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) group[j] = j < n ? x.get(i + j) : 0.0f;
  }
  return group;
}

__device__ __forceinline__ void write_group(const Elements& x, int64_t i, int n, const Group& group) {
  if (n == kGroup) {
    x.put8(i, group.v);
  } else {
#pragma unroll
    for (int j = 0; j < kGroup; ++j)
      if (j < n) x.put(i + j, group[j]);
  }
}

}  // namespace vitrail::cuda
