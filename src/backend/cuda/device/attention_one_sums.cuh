// Softmax-weighted sums over the keys of a head, for attention of one query: each group of lanes sums over
// its own keys, relative to its largest score so far; the sums are then combined over the block, always in
// the same order. Scores are in units of log 2.
#pragma once

#include "backend/cuda/device/attention_one.cuh"
#include "backend/cuda/device/mma.cuh"

namespace vitrail::cuda {

// The factor from weights relative to `top` to weights relative to `now`; where both are -inf there are no
// weights yet.
__device__ inline float shrink(float top, float now) {
  return top == now ? 1.0f : exp2_fast(top - now);
}

// A key has kSets factors. For each of them this holds the sum, and the sum of the factor times the key's
// row, of which a lane has its elements.
template <typename Cut, int kSets>
struct Gathered {
  float top = -INFINITY, sum[kSets] = {}, of[kSets][Cut::kOwn] = {};

  __device__ __forceinline__ void rise(float now) {
    const float keep = shrink(top, now);
    top = now;
#pragma unroll
    for (int s = 0; s < kSets; ++s) {
      sum[s] *= keep;
#pragma unroll
      for (int i = 0; i < Cut::kOwn; ++i) of[s][i] *= keep;
    }
  }
  // The weight of the next key; 0 for a key that does not exist, whose score is -inf.
  __device__ __forceinline__ float weigh(float score) {
    if (score > top) rise(score);
    return score == -INFINITY ? 0.0f : exp2_fast(score - top);
  }
  __device__ __forceinline__ void add(const float (&factors)[kSets], const Pack (&row)[Cut::kPacks]) {
    float values[Cut::kOwn];
    to_floats<Cut>(row, values);
#pragma unroll
    for (int s = 0; s < kSets; ++s) {
      sum[s] += factors[s];
#pragma unroll
      for (int i = 0; i < Cut::kOwn; ++i) of[s][i] += factors[s] * values[i];
    }
  }
  // Combines all groups of the warp; each then has the sums of all.
  __device__ __forceinline__ void join_warp() {
#pragma unroll
    for (int apart = kOneLanes; apart < 32; apart *= 2) {
      rise(fmaxf(top, __shfl_xor_sync(~0u, top, apart)));
#pragma unroll
      for (int s = 0; s < kSets; ++s) {
        sum[s] += __shfl_xor_sync(~0u, sum[s], apart);
#pragma unroll
        for (int i = 0; i < Cut::kOwn; ++i) of[s][i] += __shfl_xor_sync(~0u, of[s][i], apart);
      }
    }
  }
};

// The sums of the warps, in shared memory.
template <typename Cut, int kSets>
struct OneBoard {
  float top[kOneWarps], sum[kOneWarps][kSets];
  float of[kOneWarps][kSets][Cut::kWidth];

  __device__ __forceinline__ void put(Gathered<Cut, kSets>& gathered) {
    gathered.join_warp();
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (lane >= kOneLanes) return;
    if (lane == 0) top[warp] = gathered.top;
#pragma unroll
    for (int s = 0; s < kSets; ++s) {
      if (lane == 0) sum[warp][s] = gathered.sum[s];
#pragma unroll
      for (int i = 0; i < Cut::kOwn; ++i)
        of[warp][s][i / 8 * kOneStep + lane * 8 + i % 8] = gathered.of[s][i];
    }
  }
};

// The sums of the whole head, once every warp has stored its part.
template <typename Cut, int kSets>
struct OneTotal {
  const OneBoard<Cut, kSets>& board;
  float top = -INFINITY, keep[kOneWarps], sum[kSets] = {};

  __device__ explicit OneTotal(const OneBoard<Cut, kSets>& parts) : board(parts) {
#pragma unroll
    for (int w = 0; w < kOneWarps; ++w) top = fmaxf(top, board.top[w]);
#pragma unroll
    for (int w = 0; w < kOneWarps; ++w) {
      keep[w] = shrink(board.top[w], top);
#pragma unroll
      for (int s = 0; s < kSets; ++s) sum[s] += keep[w] * board.sum[w][s];
    }
  }
  __device__ float of(int set, int e) const {
    float total = 0;
#pragma unroll
    for (int w = 0; w < kOneWarps; ++w) total += keep[w] * board.of[w][set][e];
    return total;
  }
};

}  // namespace vitrail::cuda
