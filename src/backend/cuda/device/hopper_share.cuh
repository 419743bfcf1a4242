// A warp's share of a tile of the Hopper GEMM on its way out: which sums it has, the pages in shared memory
// that they pass through, and the columns of bias and scale. Knows no epilogue.
#pragma once

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/hopper.cuh"

namespace vitrail::cuda {

constexpr int kPageRows = 16, kPageColumns = 64, kPages = 3;
constexpr uint32_t kPageBytes = kPageRows * kPageColumns * 2;
constexpr int kRowsBytes = 2 * 192 * 4;   // a warp's copies of bias and scale
constexpr int kScalesBytes = 2 * 32 * 4;  // of what scales its rows before and after the epilogue

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A warp's share of a tile of 128 x 192: 16 rows of its upper half and 16 of its lower half, in six parts of
// one page each. Its sums are [2][96]; a thread has those of columns 2 (lane % 4) and 2 (lane % 4) + 1 of
// every eight, in the rows lane / 4 and lane / 4 + 8.
struct Share {
  static constexpr int kParts = 6, kAcross = 3, kColumns = kAcross * kPageColumns;
  uint32_t pages, read;  // in shared memory; read: the barriers of what is in flight to the pages
  float *bias, *scale;   // in shared memory too, of the tile's columns
  float* row_scales;     // the scales of the 32 rows' sums, then what their results are multiplied by
  int row, column;

  __device__ uint32_t page(int part) const { return pages + part % kPages * kPageBytes; }
  __device__ uint32_t barrier(int part) const { return read + part % kPages * 8; }
  __device__ int row_of(int part) const { return row + part / kAcross * 64; }
  __device__ int column_of(int part) const { return column + part % kAcross * kPageColumns; }
  // The row of the matrix that is the i-th of this warp's 32.
  __device__ int row_at(int i) const { return row + i % kPageRows + i / kPageRows * 64; }
  // Loads a part of what the epilogue reads; one lane calls it, once the page may be overwritten.
  __device__ void load(int part, const CUtensorMap& from) const {
    barrier_arrive_with(barrier(part), kPageBytes);
    tma_load(page(part), from, column_of(part), row_of(part), barrier(part));
  }
  // Stores a part from the page of `place`.
  __device__ void store(int part, int place, const CUtensorMap& d) const {
    tma_store(page(place), d, column_of(part), row_of(part));
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

// The halves of pages are counted over the tile: two per part, six per row of parts. This is the pair of
// values of a row that this thread needs for the j-th eight columns of a half.
__device__ __forceinline__ float2 pair_at(const float* row, int half, int j, int lane) {
  return *reinterpret_cast<const float2*>(row + half % 6 * 32 + 8 * j + lane % 4 * 2);
}
// The index of a thread's sums of the j-th eight columns of a half: two of its upper row, or its lower.
__device__ __forceinline__ constexpr int sums_at(int half, int j, int lower) {
  return (half % 6 * 4 + j) * 4 + lower * 2;
}
// The pair of sums of the j-th eight columns of a half, with the bias.
__device__ __forceinline__ float2 biased(const Share& share, const float (&sums)[96], int half, int j,
                                         int lower, int lane) {
  const float2 bias = pair_at(share.bias, half, j, lane);
  const int s = sums_at(half, j, lower);
  return {sums[s] + bias.x, sums[s + 1] + bias.y};
}
// The address of a lane's line of the q-th 16 columns of a half, in a page.
__device__ __forceinline__ uint32_t line_at(uint32_t page, int half, int q, int lane) {
  const int line = lane % 16, piece = half % 2 * 4 + 2 * q + lane / 16;
  return page + line * 128 + (piece ^ line % 8) * 16;
}

#endif

}  // namespace vitrail::cuda
