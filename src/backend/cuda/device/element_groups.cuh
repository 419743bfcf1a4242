// The elements that one thread handles together: two runs of four, as far apart as the threads of a block
// reach, so that neighbouring threads access neighbouring 16 bytes of f32. At the end of a value there are
// fewer; the missing elements read as zero.
#pragma once

#include "backend/cuda/device/elements.cuh"

namespace vitrail::cuda {

inline constexpr int kGroup = 8, kRun = 4;

struct Group {
  float v[kGroup];

  __device__ float& operator[](int i) { return v[i]; }
  __device__ float operator[](int i) const { return v[i]; }
};

// The places of a group: a run from `first`, a multiple of 4, and one `apart` further on. Elements from `end`
// on do not exist; a whole group does not reach it.
template <bool kWhole>
struct Places {
  int64_t first, end;
  int apart;

  __device__ int64_t run(int r) const { return first + r * apart; }
  __device__ int64_t of(int j) const { return run(j / kRun) + j % kRun; }
  __device__ bool holds(int j) const { return kWhole || of(j) < end; }
};

template <bool kWhole>
__device__ __forceinline__ Group read_group(const Elements& x, const Places<kWhole>& at) {
  Group group;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    if (!kWhole)
      group[j] = at.holds(j) ? x.get(at.of(j)) : 0.0f;
    else if (j % kRun == 0)
      x.get4(at.of(j), group.v + j);
  }
  return group;
}

template <bool kWhole>
__device__ __forceinline__ void write_group(const Elements& x, const Places<kWhole>& at, const Group& group) {
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    if (!kWhole && at.holds(j))
      x.put(at.of(j), group[j]);
    else if (kWhole && j % kRun == 0)
      x.put4(at.of(j), group.v + j);
  }
}

}  // namespace vitrail::cuda
