// The epilogue of the GEMM for few rows: its sums go to shared memory, where the layers of both warp groups
// and of all blocks of a cluster are added, and from there with bias, gelu, or scale and residual to memory.
#pragma once

#include "backend/cuda/device/gelu.cuh"
#include "backend/cuda/device/hopper_small_tiles.cuh"

namespace vitrail::cuda::small {

// s + bias, gelu(s + bias) and (s + bias) * scale + residual. An operand without data is left out.
enum class SmallEpilogue { kPlain, kGelu, kAdd };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Writes a thread's sums to its group's layer of the tile: pairs of columns, in two rows.
template <typename C, int kSums>
__device__ __forceinline__ void write_sums(const Room<C>& at, const float (&sums)[kSums]) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  float* const to = at.sums() + (thread / 32 * 16 + lane / 4) * C::kStride + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < kSums / 4; ++i) {
    *reinterpret_cast<float2*>(to + 8 * i) = {sums[4 * i], sums[4 * i + 1]};
    *reinterpret_cast<float2*>(to + 8 * C::kStride + 8 * i) = {sums[4 * i + 2], sums[4 * i + 3]};
  }
}

__device__ __forceinline__ void add_to(float4& sum, const float4& more) {
  sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
}

// A block's part of a tile, in items of four columns of a row; a worker has every kWorkers-th of them.
template <typename C>
struct Part {
  static constexpr int kAcross = C::kColumns / 4, kAll = kSmallTileRows * kAcross;
  const SmallWork& w;
  const Share& share;
  int first, end;

  __device__ Part(const SmallWork& work, const Share& s) : w(work), share(s) {
    first = kAll * s.rank / w.splits + static_cast<int>(threadIdx.x), end = kAll * (s.rank + 1) / w.splits;
  }
  __device__ int item(int i) const { return first + i * kWorkers; }
  __device__ int row(int i) const { return share.row + item(i) / kAcross; }
  __device__ int column(int i) const { return share.column + item(i) % kAcross * 4; }
  __device__ bool has(int i) const { return item(i) < end && row(i) < w.m && column(i) < w.n; }
  __device__ int64_t place(int i) const { return static_cast<int64_t>(row(i)) * w.n + column(i); }

  // The sum over the layers of all blocks; the loads of several blocks are in flight together.
  __device__ float4 total(const Room<C>& at, int i) const {
    const int offset = (item(i) / kAcross * C::kStride + item(i) % kAcross * 4) * 4;
    float4 sum = {0, 0, 0, 0};
    if (w.splits == 1) {
#pragma unroll
      for (int layer = 0; layer < kGroups; ++layer)
        add_to(sum, *reinterpret_cast<const float4*>(at.start + offset + layer * C::kLayerBytes));
      return sum;
    }
    constexpr int kAtOnce = 4;
    for (int from = 0; from < w.splits; from += kAtOnce) {
      float4 parts[kAtOnce][kGroups];
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p)
#pragma unroll
        for (int layer = 0; layer < kGroups; ++layer)
          if (from + p < w.splits)
            parts[p][layer] = read_of_block(at.base + offset + layer * C::kLayerBytes, from + p);
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p)
#pragma unroll
        for (int layer = 0; layer < kGroups; ++layer)
          if (from + p < w.splits) add_to(sum, parts[p][layer]);
    }
    return sum;
  }
};

template <typename C>
using Residual = uint2[C::kItems];

template <typename C>
__device__ __forceinline__ void fetch_residual(const Part<C>& part, Residual<C>& residual) {
#pragma unroll
  for (int i = 0; i < C::kItems; ++i)
    if (part.has(i))
      residual[i] =
          *reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(part.w.residual.data) + part.place(i));
}

template <typename T, SmallEpilogue kEpilogue, typename C>
__device__ __forceinline__ void finish(const Part<C>& part, const Room<C>& at, const Residual<C>& residual) {
#pragma unroll
  for (int i = 0; i < C::kItems; ++i) {
    if (!part.has(i)) continue;
    const int column = part.column(i) - part.share.column;
    const float4 sum = part.total(at, i), bias = *reinterpret_cast<const float4*>(at.bias() + column);
    float v[4] = {sum.x + bias.x, sum.y + bias.y, sum.z + bias.z, sum.w + bias.w};
    if constexpr (kEpilogue == SmallEpilogue::kGelu)
#pragma unroll
      for (float& x : v) x = GeluShort{}(x);
    if constexpr (kEpilogue == SmallEpilogue::kAdd) {
      const float4 by = *reinterpret_cast<const float4*>(at.scale() + column);
      const float2 low = unpack2<T>(residual[i].x), high = unpack2<T>(residual[i].y);
      v[0] = fmaf(v[0], by.x, low.x), v[1] = fmaf(v[1], by.y, low.y);
      v[2] = fmaf(v[2], by.z, high.x), v[3] = fmaf(v[3], by.w, high.y);
    }
    part.w.d.put4(part.place(i), v);
  }
}

// Copies the tile's columns of bias and scale to shared memory.
template <SmallEpilogue kEpilogue, typename C>
__device__ __forceinline__ void copy_rows(const SmallWork& w, const Share& share, const Room<C>& at) {
  const auto value = [&](const Elements& row, int c, float otherwise) {
    return row.data && share.column + c < w.n ? row.get(share.column + c) : otherwise;
  };
  for (int c = static_cast<int>(threadIdx.x); c < C::kColumns; c += kWorkers) {
    at.bias()[c] = value(w.bias, c, 0);
    if constexpr (kEpilogue == SmallEpilogue::kAdd) at.scale()[c] = value(w.scale, c, 1);
  }
}

#endif

}  // namespace vitrail::cuda::small
