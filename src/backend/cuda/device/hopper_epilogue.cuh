// The epilogue of the Hopper GEMM: bias, gelu, or scale and residual applied to the sums, then the store by
// TMA through shared memory, where every warp has a few pages of its own. Knows nothing of how the sums are
// computed.
#pragma once

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/gelu.cuh"
#include "backend/cuda/device/hopper.cuh"

namespace vitrail::cuda {

// The epilogues s + bias, gelu(s + bias) and (s + bias) * scale + residual. An operand without data is left
// out.
enum class Epilogue { kPlain, kGelu, kAdd };

constexpr int kPageRows = 16, kPageColumns = 64, kPages = 3;
constexpr uint32_t kPageBytes = kPageRows * kPageColumns * 2;
constexpr int kRowsBytes = 2 * 192 * 4;  // a warp's copies of bias and scale

struct EpilogueArgs {
  Elements bias, scale;
  int n;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A warp's share of a tile of 128 x 192: 16 rows of its upper half and 16 of its lower half, in six parts of
// one page each. Its sums are [2][96]; a thread has those of columns 2 (lane % 4) and 2 (lane % 4) + 1 of
// every eight, in the rows lane / 4 and lane / 4 + 8.
struct Share {
  static constexpr int kParts = 6, kAcross = 3, kColumns = kAcross * kPageColumns;
  uint32_t pages, added;  // in shared memory; added: the barriers of residuals in flight to the pages
  float *bias, *scale;    // in shared memory too, of the tile's columns
  int row, column;

  __device__ uint32_t page(int part) const { return pages + part % kPages * kPageBytes; }
  __device__ uint32_t barrier(int part) const { return added + part % kPages * 8; }
  __device__ int row_of(int part) const { return row + part / kAcross * 64; }
  __device__ int column_of(int part) const { return column + part % kAcross * kPageColumns; }
  // Loads a part of the residual; one lane calls it, once the page may be overwritten.
  __device__ void load(int part, const CUtensorMap& residual) const {
    barrier_arrive_with(barrier(part), kPageBytes);
    tma_load(page(part), residual, column_of(part), row_of(part), barrier(part));
  }
  __device__ void store(int part, const CUtensorMap& d) const {
    tma_store(page(part), d, column_of(part), row_of(part));
  }
};

// Copies a tile's columns of a row to shared memory; zeros from column `left` on.
template <typename E>
__device__ __forceinline__ void copy_columns(float* to, const E* from, int left, int lane) {
  constexpr int kEach = Share::kColumns / 32;
  float values[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    values[i] = lane + 32 * i < left ? static_cast<float>(from[lane + 32 * i]) : 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) to[lane + 32 * i] = values[i];
}
// Copies the columns of a row of f32 or T; without data all become `otherwise`.
template <typename T>
__device__ __forceinline__ void fetch_columns(float* to, const Elements& row, int column, int n,
                                              float otherwise, int lane) {
  if (!row.data)
    for (int c = lane; c < Share::kColumns; c += 32) to[c] = otherwise;
  else if (row.dtype == DType::kF32)
    copy_columns(to, static_cast<const float*>(row.data) + column, n - column, lane);
  else
    copy_columns(to, static_cast<const T*>(row.data) + column, n - column, lane);
}

template <typename T>
__device__ __forceinline__ float2 unpack2(uint32_t raw) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(raw));
  else
    return __half22float2(reinterpret_cast<const __half2&>(raw));
}

// Loads what the epilogue needs, before the GEMM's loop: bias, scale and the first parts of the residual.
template <typename T, Epilogue kEpilogue>
__device__ __forceinline__ void prepare(const CUtensorMap& residual, const EpilogueArgs& w, const Share& share,
                                        int lane) {
  if (kEpilogue == Epilogue::kAdd && lane == 0) {
    tma_store_wait<0>();
    for (int part = 0; part < kPages; ++part) share.load(part, residual);
  }
  fetch_columns<T>(share.bias, w.bias, share.column, w.n, 0, lane);
  if constexpr (kEpilogue == Epilogue::kAdd) fetch_columns<T>(share.scale, w.scale, share.column, w.n, 1, lane);
  __syncwarp();
}

// The halves of pages are counted over the tile: two per part, six per row of parts. This is the pair of
// values of a row that this thread needs for the j-th eight columns of a half.
__device__ __forceinline__ float2 pair_at(const float* row, int half, int j, int lane) {
  return *reinterpret_cast<const float2*>(row + half % 6 * 32 + 8 * j + lane % 4 * 2);
}
// The address of a lane's line of the q-th 16 columns of a half, in its page.
__device__ __forceinline__ uint32_t line_at(const Share& share, int half, int q, int lane) {
  const int line = lane % 16, piece = half % 2 * 4 + 2 * q + lane / 16;
  return share.page(half / 2) + line * 128 + (piece ^ line % 8) * 16;
}

// Writes half a page of sums, with bias and gelu, to the page.
template <typename T, Epilogue kEpilogue>
__device__ __forceinline__ void write_half(const Share& share, const float (&sums)[96], int half, int lane) {
  uint32_t results[2][4];
#pragma unroll
  for (int q = 0; q < 2; ++q)
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // upper and lower rows of eight columns, then of the next eight
      const int j = 2 * q + i / 2, s = (half % 6 * 4 + j) * 4 + i % 2 * 2;
      const float2 bias = pair_at(share.bias, half, j, lane);
      float2 x{sums[s] + bias.x, sums[s + 1] + bias.y};
      if constexpr (kEpilogue == Epilogue::kGelu) x = {GeluShort{}(x.x), GeluShort{}(x.y)};
      results[q][i] = pack2<T>(x.x, x.y);
    }
  if (half % 2 == 0) {
    if (lane == 0) tma_store_wait<kPages - 1>();
    __syncwarp();
  }
#pragma unroll
  for (int q = 0; q < 2; ++q) store8x8x4(line_at(share, half, q, lane), results[q]);
}

// Adds half a page of sums, with bias and scale, to the residual in the page.
template <typename T>
__device__ __forceinline__ void add_half(const Share& share, const float (&sums)[96], int half, int lane) {
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const uint32_t at = line_at(share, half, q, lane);
    uint32_t both[4];
    load16x16(both, at);
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // as in write_half
      const int j = 2 * q + i / 2, s = (half % 6 * 4 + j) * 4 + i % 2 * 2;
      const float2 bias = pair_at(share.bias, half, j, lane), by = pair_at(share.scale, half, j, lane);
      const float2 r = unpack2<T>(both[i]);
      both[i] = pack2<T>(fmaf(sums[s] + bias.x, by.x, r.x), fmaf(sums[s + 1] + bias.y, by.y, r.y));
    }
    store8x8x4(at, both);
  }
}

template <typename T, Epilogue kEpilogue>
__device__ __forceinline__ void send_sums(const CUtensorMap& d, const Share& share,
                                          const float (&sums)[2][96], int lane) {
#pragma unroll
  for (int part = 0; part < Share::kParts; ++part) {
    write_half<T, kEpilogue>(share, sums[part / 3], 2 * part, lane);
    write_half<T, kEpilogue>(share, sums[part / 3], 2 * part + 1, lane);
    group_publish();
    __syncwarp();
    if (lane == 0) share.store(part, d);
  }
}

// The residuals of the first kPages parts are already in flight. A later one is loaded as soon as the store
// of its page has read shared memory, for which it has the time of one more part. Where d is the residual,
// each part of it is read before it is written, by this warp alone.
template <typename T>
__device__ __forceinline__ void send_added(const CUtensorMap& d, const CUtensorMap& residual,
                                           const Share& share, const float (&sums)[2][96], int lane) {
  static_assert(Share::kParts / kPages % 2 == 0, "every tile finds the barriers at the same parity");
#pragma unroll
  for (int part = 0; part < Share::kParts; ++part) {
    barrier_wait(share.barrier(part), part / kPages % 2);
    add_half<T>(share, sums[part / 3], 2 * part, lane);
    add_half<T>(share, sums[part / 3], 2 * part + 1, lane);
    group_publish();
    __syncwarp();
    if (lane != 0) continue;
    share.store(part, d);
    if (part == 0 || part - 1 + kPages >= Share::kParts) continue;
    tma_store_wait<1>();
    share.load(part - 1 + kPages, residual);
  }
}

#endif

}  // namespace vitrail::cuda
