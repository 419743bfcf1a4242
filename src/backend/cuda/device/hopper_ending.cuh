// What becomes of a warp's sums of a product on their way out: bias, gelu, or scale and residual, then 16 rows
// of 64 columns at a time through shared memory. Used by hopper_gemm.cu.
#pragma once

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/gelu.cuh"
#include "backend/cuda/device/hopper.cuh"

namespace vitrail::cuda {

// s + bias; gelu(s + bias); (s + bias) * scale + residual. No data: left out.
enum class Ending { kPlain, kGelu, kAdd };

constexpr int kPageRows = 16, kPageColumns = 64, kPages = 2;
constexpr uint32_t kPageBytes = kPageRows * kPageColumns * 2;

struct EndingArgs {
  Elements bias, scale, residual;
  int m, n;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <typename T>
__device__ __forceinline__ float2 unpack2(uint32_t raw) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(raw));
  else
    return __half22float2(reinterpret_cast<const __half2&>(raw));
}

// Columns c and c + 1 of f32 or T.
template <typename T>
__device__ __forceinline__ float2 pair_at(const Elements& row, int c) {
  if (row.dtype == DType::kF32)
    return *reinterpret_cast<const float2*>(static_cast<const float*>(row.data) + c);
  return unpack2<T>(*reinterpret_cast<const uint32_t*>(static_cast<const T*>(row.data) + c));
}

// What 64 columns of sums meet, as this thread needs it; fetched well before its use.
template <typename T, Ending kEnding>
struct Beside {
  float2 bias[8];
  uint32_t residual[kEnding == Ending::kAdd ? 16 : 1];

  __device__ __forceinline__ void fetch(const EndingArgs& w, int row, int column) {  // of the first element
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int c = column + 8 * j;
      bias[j] = w.bias.data && c < w.n ? pair_at<T>(w.bias, c) : float2{0, 0};
      if constexpr (kEnding == Ending::kAdd) {
        const T* at = static_cast<const T*>(w.residual.data) + static_cast<int64_t>(row) * w.n + c;
        residual[2 * j] = c < w.n && row < w.m ? __ldcs(reinterpret_cast<const unsigned*>(at)) : 0;
        at += 8ll * w.n;
        residual[2 * j + 1] = c < w.n && row + 8 < w.m ? __ldcs(reinterpret_cast<const unsigned*>(at)) : 0;
      }
    }
  }
  // The j-th eight columns, of the upper or lower eight rows.
  __device__ __forceinline__ uint32_t meet(const EndingArgs& w, int column, float2 s, int j,
                                           int lower) const {
    s.x += bias[j].x, s.y += bias[j].y;
    if constexpr (kEnding == Ending::kGelu) s = {GeluShort{}(s.x), GeluShort{}(s.y)};
    if constexpr (kEnding == Ending::kAdd) {
      const float2 r = unpack2<T>(residual[2 * j + lower]);
      const bool scaled = w.scale.data && column + 8 * j < w.n;
      const float2 by = scaled ? pair_at<T>(w.scale, column + 8 * j) : float2{1, 1};
      s = {fmaf(s.x, by.x, r.x), fmaf(s.y, by.y, r.y)};
    }
    return pack2<T>(s.x, s.y);
  }
};

// Sends 64 columns of a warp's sums, from the kPart-th 64 of its tile on, out through one of its pages.
template <typename T, Ending kEnding, int kPart>
__device__ __forceinline__ void send_columns(const CUtensorMap& map, const EndingArgs& w,
                                             const float (&sums)[128], const Beside<T, kEnding>& beside,
                                             uint32_t page, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32, line = lane % 16;
  uint32_t results[4][4];
#pragma unroll
  for (int q = 0; q < 4; ++q)
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // upper and lower rows of eight columns, then of the next eight
      const int j = 2 * q + i / 2, s = (kPart * 8 + j) * 4 + i % 2 * 2;
      results[q][i] = beside.meet(w, column + lane % 4 * 2, {sums[s], sums[s + 1]}, j, i % 2);
    }
  if (lane == 0) box_stores_read<kPages - 1>();
  __syncwarp();
#pragma unroll
  for (int q = 0; q < 4; ++q)
    store8x8x4(page + line * 128 + (((2 * q + lane / 16) ^ (line % 8)) * 16), results[q]);
  group_publish();
  __syncwarp();
  if (lane == 0) box_store(page, map, column, row);
}

#endif

}  // namespace vitrail::cuda
