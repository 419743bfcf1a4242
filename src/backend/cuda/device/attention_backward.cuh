// Defines what the tensor-core kernels of attention's gradient share: a warp owns 16 rows (queries, or keys
// with their values) in registers and multiplies them with the rows of the other side in shared memory, 16 at
// a time. Scores are in powers of two: `unit` is the scores' scale times log2(e). Knows neither where rows
// come from nor which sequences are long.
#pragma once

#include "backend/cuda/device/attention.cuh"
#include "backend/cuda/device/attention_tiles.cuh"

namespace vitrail::cuda {

// The gradient for sequences whose rows do not all fit into shared memory, with a head size up to
// kLongHeadSize.
void attention_backward_long(Session& session, const AttentionGradCall& call);

// The gradient by GEMMs of warp groups; returns false, with nothing done, where the GPU or the sizes do not
// suit.
bool attention_backward_groups(Session& session, const AttentionGradCall& call);

// Packs two adjacent accumulators into an A operand of 16 terms.
template <typename T>
__device__ __forceinline__ void pack_operand(uint32_t (&a)[4], const float (&sums)[2][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = pack2<T>(sums[i / 2][i % 2 * 2], sums[i / 2][i % 2 * 2 + 1]);
}

// The GEMMs of a warp's 16 kOwn rows of kSize elements with tiles of 16 rows; lane[] and column[] are this
// lane's addresses in a tile at offset 0 of `base`. Each value read from a tile serves all kOwn rows.
template <typename T, int kSize>
struct Tiles {
  static constexpr int kSteps = kSize / 16;
  static constexpr int kBytes = 16 * Swizzle<kSize>::kRowBytes;
  using Rows = uint32_t[kSteps][4];
  using Sums = float[2 * kSteps][4];
  uint32_t lane[kSteps], column[kSteps];

  __device__ __forceinline__ explicit Tiles(uint32_t base) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      lane[step] = base + Swizzle<kSize>::lane_offset(threadIdx.x % 32, step);
      column[step] = base + Swizzle<kSize>::column_offset(threadIdx.x % 32, step);
    }
  }
  template <int kOwn>
  __device__ __forceinline__ void load(Rows (&rows)[kOwn], uint32_t tile) const {
#pragma unroll
    for (int i = 0; i < kOwn * kSteps; ++i)
      load16x16(rows[i / kSteps][i % kSteps], lane[i % kSteps] + tile + i / kSteps * kBytes);
  }
  // sums = rows tile^T: 16 x 16 each.
  template <int kOwn>
  __device__ __forceinline__ void dots(float (&sums)[kOwn][2][4], const Rows (&rows)[kOwn],
                                       uint32_t tile) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t b[4];
      load16x16(b, column[step] + tile);
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        if (step == 0) {
          mma_first<T>(sums[own][0], rows[own][0], b[0], b[1]);
          mma_first<T>(sums[own][1], rows[own][0], b[2], b[3]);
        } else {
          mma<T>(sums[own][0], rows[own][step], b[0], b[1]);
          mma<T>(sums[own][1], rows[own][step], b[2], b[3]);
        }
      }
    }
  }
  // sums += weights tile: 16 x kSize each.
  template <int kOwn>
  __device__ __forceinline__ void weigh(Sums (&sums)[kOwn], const uint32_t (&weights)[kOwn][4],
                                        uint32_t tile) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t b[4];
      load16x16_turned(b, lane[step] + tile);
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        mma<T>(sums[own][2 * step], weights[own], b[0], b[1]);
        mma<T>(sums[own][2 * step + 1], weights[own], b[2], b[3]);
      }
    }
  }
};

// Sets the scores of padding, columns from `keys` on, to -inf. `first` is the column of sums[0][0] of lane 0.
__device__ __forceinline__ void mask_columns(float (&sums)[2][4], int first, int keys) {
  if (first + 16 <= keys) return;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (first + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2 >= keys) sums[i / 4][i % 4] = -INFINITY;
}

// 16 kOwn rows of keys and values with their gradients, which are summed over the queries.
template <typename T, int kSize, int kOwn>
struct KeyRows {
  typename Tiles<T, kSize>::Rows k[kOwn], v[kOwn];
  typename Tiles<T, kSize>::Sums dk[kOwn] = {}, dv[kOwn] = {};

  // Adds one tile of queries. `facts` are those of this lane's queries, columns 2t, 2t+1, 2t+8, 2t+9 of the
  // tile (t = lane % 4).
  __device__ __forceinline__ void meet(const Tiles<T, kSize>& tiles, uint32_t q, uint32_t dout,
                                       const QueryFacts (&facts)[4], float unit) {
    float sums[kOwn][2][4];
    uint32_t weights[kOwn][4];
    tiles.dots(sums, k, q);
#pragma unroll
    for (int own = 0; own < kOwn; ++own) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        sums[own][i / 4][i % 4] =
            exp2_fast(sums[own][i / 4][i % 4] * unit - facts[i / 4 * 2 + i % 2].log_sum);
      pack_operand<T>(weights[own], sums[own]);
    }
    tiles.weigh(dv, weights, dout);
    tiles.dots(sums, v, dout);
#pragma unroll
    for (int i = 0; i < kOwn * 4; ++i) {
      uint32_t& pair = weights[i / 4][i % 4];
      const float(&dweight)[4] = sums[i / 4][i % 4 / 2];
      const float2 weight = unpack2<T>(pair);
      pair = pack2<T>(weight.x * (dweight[i % 2 * 2] - facts[i % 4 / 2 * 2].mean),
                      weight.y * (dweight[i % 2 * 2 + 1] - facts[i % 4 / 2 * 2 + 1].mean));
    }
    tiles.weigh(dk, weights, q);
  }
};

}  // namespace vitrail::cuda
