// The epilogue of the Hopper GEMM: bias, gelu, scale and residual, or the slope of a gelu applied to the
// sums, then the store by TMA through shared memory, where every warp has a few pages of its own. Knows
// nothing of how the sums are computed.
#pragma once

#include "backend/cuda/api/gemms.h"
#include "backend/cuda/device/gelu.cuh"
#include "backend/cuda/device/hopper_codes.cuh"

namespace vitrail::cuda {

// The epilogues s + bias; gelu(s + bias); s + bias, rounded, and gelu of that; gelu(s + bias) and its slope;
// gelu(s + bias) as e4m3 codes; (s + bias) * scale + residual; s times the slope of the gelu at another
// matrix, and s times another matrix, with the sums of its columns. An operand without data is left out.
enum class Epilogue { kPlain, kGelu, kGeluKept, kGeluSlope, kGeluCodes, kAdd, kSlope, kTimes };
// Says whether an epilogue makes a gradient, with the sums of its columns.
template <Epilogue kEpilogue>
constexpr bool kGradient = kEpilogue == Epilogue::kSlope || kEpilogue == Epilogue::kTimes;
// These say whether an epilogue reads a matrix of the result's shape, and whether it makes two results.
template <Epilogue kEpilogue>
constexpr bool kReads = kEpilogue == Epilogue::kAdd || kGradient<kEpilogue>;
template <Epilogue kEpilogue>
constexpr bool kMakesTwo = kEpilogue == Epilogue::kGeluKept || kEpilogue == Epilogue::kGeluSlope;

struct EpilogueArgs {
  Elements bias, scale;
  float* partials;    // of the column sums, a row for every 32 rows of the result; null: none are wanted
  CodeScales scales;  // of GEMMs of e4m3 codes
  int m, n;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Loads what the epilogue needs, before the GEMM's loop: bias, scale and the first parts of what it reads.
template <typename T, Epilogue kEpilogue, bool kScaled>
__device__ __forceinline__ void prepare(const CUtensorMap& read, const EpilogueArgs& w, const Share& share,
                                        int lane) {
  if (kReads<kEpilogue> && lane == 0) {
    tma_store_wait<0>();
    for (int part = 0; part < kPages; ++part) share.load(part, read);
  }
  if constexpr (kScaled) {
    copy_columns(share.scale, w.scales.b + share.column, w.n - share.column, lane);
    prepare_row<kEpilogue == Epilogue::kGeluCodes>(w.scales, share, w.m, lane);
  }
  if constexpr (!kGradient<kEpilogue>) fetch_columns<T>(share.bias, w.bias, share.column, w.n, 0, lane);
  if constexpr (kEpilogue == Epilogue::kAdd)
    fetch_columns<T>(share.scale, w.scale, share.column, w.n, 1, lane);
  __syncwarp();
}

// Writes half a page of sums, with bias and gelu, to the page.
template <typename T, Epilogue kEpilogue>
__device__ __forceinline__ void write_half(const Share& share, const float (&sums)[96], int half, int lane) {
  uint32_t results[2][4];
#pragma unroll
  for (int q = 0; q < 2; ++q)
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // upper and lower rows of eight columns, then of the next eight
      float2 x = biased(share, sums, half, 2 * q + i / 2, i % 2, lane);
      if constexpr (kEpilogue == Epilogue::kGelu) x = {GeluShort{}(x.x), GeluShort{}(x.y)};
      results[q][i] = pack2<T>(x.x, x.y);
    }
  if (half % 2 == 0) {
    if (lane == 0) tma_store_wait<kPages - 1>();
    __syncwarp();
  }
#pragma unroll
  for (int q = 0; q < 2; ++q) store8x8x4(line_at(share.page(half / 2), half, q, lane), results[q]);
}

// Half a page of what is kept and of the gelu, as fragments of two 16 x 16 matrices: the sums with bias,
// rounded, and the gelu of what was rounded; or the slope and the gelu of the sums with bias.
struct BothOfHalf {
  uint32_t kept[2][4], gelu[2][4];

  template <typename T, Epilogue kEpilogue>
  __device__ __forceinline__ void compute(const Share& share, const float (&sums)[96], int half, int lane) {
#pragma unroll
    for (int q = 0; q < 2; ++q)
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // as in write_half
        const float2 x = biased(share, sums, half, 2 * q + i / 2, i % 2, lane);
        if constexpr (kEpilogue == Epilogue::kGeluSlope) {
          const GeluBoth left(x.x), right(x.y);
          kept[q][i] = pack2<T>(left.slope, right.slope);
          gelu[q][i] = pack2<T>(left.value, right.value);
        } else {
          kept[q][i] = pack2<T>(x.x, x.y);
          const float2 rounded = unpack2<T>(kept[q][i]);
          gelu[q][i] = pack2<T>(GeluShort{}(rounded.x), GeluShort{}(rounded.y));
        }
      }
  }
  __device__ __forceinline__ void write(uint32_t kept_page, uint32_t gelu_page, int half, int lane) const {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      store8x8x4(line_at(kept_page, half, q, lane), kept[q]);
      store8x8x4(line_at(gelu_page, half, q, lane), gelu[q]);
    }
  }
};

// Adds half a page of sums, with bias and scale, to the residual in the page.
template <typename T>
__device__ __forceinline__ void add_half(const Share& share, const float (&sums)[96], int half, int lane) {
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const uint32_t at = line_at(share.page(half / 2), half, q, lane);
    uint32_t both[4];
    load16x16(both, at);
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // as in write_half
      const int j = 2 * q + i / 2;
      const float2 x = biased(share, sums, half, j, i % 2, lane), by = pair_at(share.scale, half, j, lane);
      const float2 r = unpack2<T>(both[i]);
      both[i] = pack2<T>(fmaf(x.x, by.x, r.x), fmaf(x.y, by.y, r.y));
    }
    store8x8x4(at, both);
  }
}

// Multiplies half a page of sums by what the page holds, or by the gelu's slope there; `columns` are this
// thread's sums over both its rows, of two columns of every eight.
template <typename T, Epilogue kEpilogue>
__device__ __forceinline__ void slope_half(const Share& share, const float (&sums)[96], int half,
                                           float (&columns)[8], int lane) {
  uint32_t both[2][4];
#pragma unroll
  for (int q = 0; q < 2; ++q) load16x16(both[q], line_at(share.page(half / 2), half, q, lane));
#pragma unroll
  for (int q = 0; q < 2; ++q)
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // as in write_half
      const int j = 2 * q + i / 2, s = sums_at(half, j, i % 2);
      const float2 x = unpack2<T>(both[q][i]);
      float2 dx{x.x * sums[s], x.y * sums[s + 1]};
      if constexpr (kEpilogue == Epilogue::kSlope)
        dx = {GeluShortGrad{}(x.x, sums[s]), GeluShortGrad{}(x.y, sums[s + 1])};
      columns[2 * j] = i % 2 ? columns[2 * j] + dx.x : dx.x;
      columns[2 * j + 1] = i % 2 ? columns[2 * j + 1] + dx.y : dx.y;
      both[q][i] = pack2<T>(dx.x, dx.y);
    }
#pragma unroll
  for (int q = 0; q < 2; ++q) store8x8x4(line_at(share.page(half / 2), half, q, lane), both[q]);
}

// Adds up what the eight lanes of a column have, for all 64 columns of a page: lane l gets the sums of
// columns 2 l and 2 l + 1. In each of three steps a lane keeps half of its columns and gives half away.
__device__ __forceinline__ float2 sum_lanes(const float (&first)[8], const float (&second)[8], int lane) {
  float v[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const bool upper = lane & 16;
    v[i] = (upper ? second[i] : first[i]) + __shfl_xor_sync(~0u, upper ? first[i] : second[i], 16);
  }
#pragma unroll
  for (int width = 4; width >= 2; width /= 2)
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const bool upper = lane & (2 * width);
      v[i] = (upper ? v[i + width] : v[i]) + __shfl_xor_sync(~0u, upper ? v[i] : v[i + width], 2 * width);
    }
  return {v[0], v[1]};
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
    if (lane == 0) share.store(part, part, d);
  }
}

// A part takes two pages, of which the one before the last may still be read by its store; half of the part's
// gelus are computed meanwhile, for more there are not enough registers.
template <typename T, Epilogue kEpilogue>
__device__ __forceinline__ void send_both(const CUtensorMap& d, const CUtensorMap& kept, const Share& share,
                                          const float (&sums)[2][96], int lane) {
#pragma unroll
  for (int part = 0; part < Share::kParts; ++part) {
#pragma unroll
    for (int half : {2 * part, 2 * part + 1}) {
      BothOfHalf both;
      both.compute<T, kEpilogue>(share, sums[part / 3], half, lane);
      if (half % 2 == 0) {
        if (lane == 0) tma_store_wait<kPages - 2>();
        __syncwarp();
      }
      both.write(share.page(2 * part), share.page(2 * part + 1), half, lane);
    }
    group_publish();
    __syncwarp();
    if (lane != 0) continue;
    share.store(part, 2 * part, kept);
    share.store(part, 2 * part + 1, d);
  }
}

// Writes the sums of this warp's 32 rows, which `columns` has of each of the three columns of parts.
__device__ __forceinline__ void write_columns(const EpilogueArgs& w, const Share& share,
                                              const float2 (&columns)[Share::kAcross], int lane) {
  // A tile's 128 rows are four warps' shares, in the order of their first rows.
  const int64_t part = share.row / kHopperTileRows * 4 + share.row % kHopperTileRows / kPageRows;
#pragma unroll
  for (int c = 0; c < Share::kAcross; ++c) {
    const int column = share.column_of(c) + 2 * lane;
    if (column < w.n) *reinterpret_cast<float2*>(w.partials + part * w.n + column) = columns[c];
  }
}

// What the first kPages parts read is already in flight. A later part is loaded as soon as the store of its
// page has read shared memory, for which it has the time of one more part. Where d is the matrix that is
// read, each part of it is read before it is written, by this warp alone.
template <typename T, Epilogue kEpilogue>
__device__ __forceinline__ void send_read(const CUtensorMap& d, const CUtensorMap& read,
                                          const EpilogueArgs& w, const Share& share,
                                          const float (&sums)[2][96], int lane) {
  static_assert(Share::kParts / kPages % 2 == 0, "every tile finds the barriers at the same parity");
  float2 columns[Share::kAcross] = {};
#pragma unroll
  for (int part = 0; part < Share::kParts; ++part) {
    barrier_wait(share.barrier(part), part / kPages % 2);
    if constexpr (kEpilogue == Epilogue::kAdd) {
      add_half<T>(share, sums[part / 3], 2 * part, lane);
      add_half<T>(share, sums[part / 3], 2 * part + 1, lane);
    } else {
      float first[8], second[8];
      slope_half<T, kEpilogue>(share, sums[part / 3], 2 * part, first, lane);
      slope_half<T, kEpilogue>(share, sums[part / 3], 2 * part + 1, second, lane);
      const float2 both = sum_lanes(first, second, lane);
      columns[part % 3].x += both.x, columns[part % 3].y += both.y;
    }
    group_publish();
    __syncwarp();
    if (lane != 0) continue;
    share.store(part, part, d);
    if (part == 0 || part - 1 + kPages >= Share::kParts) continue;
    tma_store_wait<1>();
    share.load(part - 1 + kPages, read);
  }
  if (kGradient<kEpilogue> && w.partials) write_columns(w, share, columns, lane);
}

#endif

}  // namespace vitrail::cuda
