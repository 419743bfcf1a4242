// Defines what the tensor-core attention kernels do with a warp's 16 queries and tiles of 16 keys: scores,
// softmax weights and weighted values, in registers; rows pass through shared memory (Swizzle of mma.cuh).
#pragma once

#include "backend/cuda/api/attention.h"
#include "backend/cuda/device/mma.cuh"

namespace vitrail::cuda {

// The rows of one head of one image, as 16-bit elements.
struct HeadStart {
  char* data;
  int64_t row_bytes;

  __device__ __forceinline__ HeadStart(const HeadRows& rows, int64_t image, int64_t head)
      : data(static_cast<char*>(rows.data) + 2 * (image * rows.batch + head * rows.head)),
        row_bytes(2 * rows.row) {}
};

// A block of kThreads copies `padded` rows, from `first` on, to shared memory; what lies beyond `rows` rows
// and `pieces` pieces of 16 bytes becomes zero.
template <int kSize, int kThreads>
__device__ __forceinline__ void fetch_rows(uint32_t target, const HeadStart& head, int first, int rows,
                                           int padded, int pieces) {
  constexpr int kTogether = kThreads / 8;  // rows at a time: eight threads copy one
  const int lane = static_cast<int>(threadIdx.x) % 8;
  int row = static_cast<int>(threadIdx.x) / 8;
  const char* source = head.data + (first + row) * head.row_bytes + lane * 16;
#pragma unroll 4
  for (; row < padded; row += kTogether, source += kTogether * head.row_bytes)
#pragma unroll
    for (int piece = 0; piece < Swizzle<kSize>::kPieces; piece += 8)
      if (piece + lane < Swizzle<kSize>::kPieces)
        copy16(target + Swizzle<kSize>::offset(row, piece + lane), source + piece * 16,
               first + row < rows && piece + lane < pieces);
}

// Transposes 4-byte words within a quad: lane t provides the t-th words of four pieces of 16 bytes and gets
// the t-th piece whole.
__device__ __forceinline__ void exchange_in_quad(uint32_t (&w)[4]) {
#pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
    const bool upper = threadIdx.x & bit;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int low = bit == 1 ? 2 * i : i, high = low + bit;
      const uint32_t got = __shfl_xor_sync(~0u, upper ? w[low] : w[high], bit);
      if (upper)
        w[low] = got;
      else
        w[high] = got;
    }
  }
}

// Sixteen rows of a warp: first in flight from global memory, then the A operands of their GEMMs.
struct QueryFragment {
  uint32_t words[2][2][4];  // [upper, lower eight rows][half of the row]

  __device__ __forceinline__ void fetch(const HeadStart& head, int first, int rows, int pieces) {
    const int row = first + threadIdx.x % 32 / 4, quad = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = row + i / 2 * 8, piece = i % 2 * 4 + quad;
      uint4 got = make_uint4(0, 0, 0, 0);
      if (at < rows && piece < pieces)
        got = *reinterpret_cast<const uint4*>(head.data + at * head.row_bytes + piece * 16);
      uint32_t(&w)[4] = words[i / 2][i % 2];
      w[0] = got.x, w[1] = got.y, w[2] = got.z, w[3] = got.w;
    }
  }
  __device__ __forceinline__ void arrive() {
#pragma unroll
    for (int i = 0; i < 4; ++i) exchange_in_quad(words[i / 2][i % 2]);
  }
  __device__ __forceinline__ void operator()(uint32_t (&a)[4], int step) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = words[i % 2][step / 2][step % 2 * 2 + i / 2];
  }
};

// Writes the warp's 16 rows, times a factor each, from row `first` on: `pieces` pieces of 16 bytes of each
// row, and no row from `rows` on.
template <typename T, int kSize>
__device__ __forceinline__ void store_rows(const HeadStart& target, int first, int rows, int pieces,
                                           const float (&sums)[kSize / 8][4], float factor,
                                           float factor_below) {
  const int quad = threadIdx.x % 4, row = first + threadIdx.x % 32 / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float times = half ? factor_below : factor;
    char* at = target.data + (row + 8 * half) * target.row_bytes;
#pragma unroll
    for (int piece = 0; piece < kSize / 8; piece += 4) {
      uint32_t w[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        w[i] = piece + i < kSize / 8
                   ? pack2<T>(sums[piece + i][2 * half] * times, sums[piece + i][2 * half + 1] * times)
                   : 0;
      exchange_in_quad(w);
      if (row + 8 * half < rows && piece + quad < pieces)
        *reinterpret_cast<uint4*>(at + (piece + quad) * 16) = make_uint4(w[0], w[1], w[2], w[3]);
    }
  }
}

// The weighted values of a warp's 16 queries over the keys so far, to be divided by the sum of the weights,
// which are relative to the largest score. A lane has rows g and g+8.
template <int kSize>
struct Answer {
  float o[kSize / 8][4], top[2], sum[2];

  __device__ __forceinline__ void begin() {
    top[0] = top[1] = -INFINITY;
    sum[0] = sum[1] = 0;
  }
  // Rescales to weights relative to a new largest score.
  __device__ __forceinline__ void rescale(const float (&now)[2], float scale) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float keep = exp2_fast((top[row] - now[row]) * scale);
      sum[row] *= keep;
#pragma unroll
      for (int n = 0; n < kSize / 8; ++n) o[n][2 * row] *= keep, o[n][2 * row + 1] *= keep;
    }
  }
};

template <typename T, int kSize>
struct WarpTiles {
  static constexpr int kSteps = kSize / 16;
  static constexpr uint32_t kTileBytes = 16 * Swizzle<kSize>::kRowBytes;

  uint32_t lane_offsets[kSteps], column_offsets[kSteps];
  int group, quad;  // a lane's g and t

  __device__ __forceinline__ explicit WarpTiles(int lane) : group(lane / 4), quad(lane % 4) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      lane_offsets[step] = Swizzle<kSize>::lane_offset(lane, step);
      column_offsets[step] = Swizzle<kSize>::column_offset(lane, step);
    }
  }

  // s = q k^T: 16 queries, kTiles tiles of keys. operand(a, step) loads a part of the queries.
  template <int kTiles, typename F>
  __device__ __forceinline__ void scores(float (&s)[2 * kTiles][4], const F& operand, uint32_t k) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t a[4];
      operand(a, step);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        uint32_t b[4];
        load16x16(b, k + column_offsets[step] + tile * kTileBytes);
        if (step == 0) {
          mma_first<T>(s[2 * tile], a, b[0], b[1]);
          mma_first<T>(s[2 * tile + 1], a, b[2], b[3]);
        } else {
          mma<T>(s[2 * tile], a, b[0], b[1]);
          mma<T>(s[2 * tile + 1], a, b[2], b[3]);
        }
      }
    }
  }

  // Sets the scores of padding to -inf. The first kFull tiles are known to have no padding; `keys` counts
  // from the first tile on.
  template <int kFull, int kTiles>
  __device__ __forceinline__ void mask(float (&s)[2 * kTiles][4], int keys) const {
#pragma unroll
    for (int tile = kFull > 0 ? kFull : 0; tile < kTiles; ++tile) {
      if (16 * (tile + 1) <= keys) continue;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int column = 16 * tile + i / 4 * 8 + 2 * quad + i % 2;
        if (column >= keys) s[2 * tile + i / 4][i % 4] = -INFINITY;
      }
    }
  }

  // The largest scores of rows g and g+8.
  template <int kTiles>
  __device__ __forceinline__ void row_max(const float (&s)[2 * kTiles][4], float (&top)[2]) const {
#pragma unroll
    for (int n = 0; n < 2 * kTiles; ++n) {
      top[0] = fmaxf(top[0], fmaxf(s[n][0], s[n][1]));
      top[1] = fmaxf(top[1], fmaxf(s[n][2], s[n][3]));
    }
    top[0] = quad_max(top[0]), top[1] = quad_max(top[1]);
  }

  // Turns scores into weights, 2^(scale s - shift), as A operands, and adds the weights of this lane's
  // columns to sum.
  template <int kTiles>
  __device__ __forceinline__ void weights(uint32_t (&w)[kTiles][4], float (&sum)[2],
                                          const float (&s)[2 * kTiles][4], float scale,
                                          const float (&shift)[2]) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
      tile_weights(w[tile], sum, s[2 * tile], s[2 * tile + 1], scale, shift);
  }
  // The same for one tile.
  __device__ __forceinline__ void tile_weights(uint32_t (&w)[4], float (&sum)[2], const float (&left)[4],
                                               const float (&right)[4], float scale,
                                               const float (&shift)[2]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* pair = &(i < 2 ? left : right)[i % 2 * 2];
      const float first = exp2_fast(fmaf(pair[0], scale, -shift[i % 2]));
      const float second = exp2_fast(fmaf(pair[1], scale, -shift[i % 2]));
      sum[i % 2] += first + second;
      w[i] = pack2<T>(first, second);
    }
  }

  // o += w v, or o = w v.
  template <int kTiles, bool kFirst>
  __device__ __forceinline__ void add_values(float (&o)[2 * kSteps][4], const uint32_t (&w)[kTiles][4],
                                             uint32_t v) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        uint32_t b[4];
        load16x16_turned(b, v + lane_offsets[step] + tile * kTileBytes);
        if (kFirst && tile == 0) {
          mma_first<T>(o[2 * step], w[tile], b[0], b[1]);
          mma_first<T>(o[2 * step + 1], w[tile], b[2], b[3]);
        } else {
          mma<T>(o[2 * step], w[tile], b[0], b[1]);
          mma<T>(o[2 * step + 1], w[tile], b[2], b[3]);
        }
      }
  }

  // Adds kTiles tiles of keys with their scores to the answer, or begins the answer with them; `keys` of the
  // keys are not padding, and the first kFull tiles have no padding.
  template <int kTiles, int kFull, bool kFirst>
  __device__ __forceinline__ void take(Answer<kSize>& answer, float (&s)[2 * kTiles][4], uint32_t v, int keys,
                                       float scale) const {
    mask<kFull, kTiles>(s, keys);
    if constexpr (kFirst) answer.begin();
    float top[2] = {answer.top[0], answer.top[1]};
    row_max<kTiles>(s, top);
    if constexpr (!kFirst) answer.rescale(top, scale);
    answer.top[0] = top[0], answer.top[1] = top[1];
    const float shift[2] = {top[0] * scale, top[1] * scale};
    uint32_t w[kTiles][4];
    weights<kTiles>(w, answer.sum, s, scale, shift);
    add_values<kTiles, kFirst>(answer.o, w, v);
  }

  // Writes the answer through `stage`, 16 rows of shared memory that only this warp uses; only the first
  // `rows` rows are written.
  __device__ __forceinline__ void store(const Answer<kSize>& answer, char* stage, char* target,
                                        int64_t row_bytes, int rows, int pieces) const {
    constexpr int kPieces = Swizzle<kSize>::kPieces;
    const float left = __fdividef(1, quad_sum(answer.sum[0])), right = __fdividef(1, quad_sum(answer.sum[1]));
    __syncwarp();
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      char* pair = stage + Swizzle<kSize>::offset(group, piece) + 4 * quad;
      *reinterpret_cast<uint32_t*>(pair) = pack2<T>(answer.o[piece][0] * left, answer.o[piece][1] * left);
      *reinterpret_cast<uint32_t*>(pair + kTileBytes / 2) =
          pack2<T>(answer.o[piece][2] * right, answer.o[piece][3] * right);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kPieces / 2; ++i) {
      const unsigned at = static_cast<unsigned>(32 * i + 4 * group + quad);
      const int row = static_cast<int>(at / kPieces), piece = static_cast<int>(at % kPieces);
      if (row < rows && piece < pieces)
        *reinterpret_cast<uint4*>(target + row * row_bytes + piece * 16) =
            *reinterpret_cast<const uint4*>(stage + Swizzle<kSize>::offset(row, piece));
    }
  }
};

}  // namespace vitrail::cuda
