// The sums over all tokens of dq, dk and dv, a head's gradient of the bias that was added to its qkv. Those
// of dk are zero, since the gradients of a query's scores add up to zero, and those of dv are the sums of
// dout, since a query's weights add up to one: only dq has to be added up. Knows not how dq is computed.
#pragma once

#include "backend/cuda/api/attention.h"

namespace vitrail::cuda {

// A warp's sums of dq: a lane has columns 2 lane and 2 lane + 1.
struct QueryColumns {
  static constexpr int kColumns = 64;
  // A lane has rows g and g + 8 (g = lane / 4), two columns of every eight.
  using Rows = float[kColumns / 8][4];

  float2 total = {0, 0};

  // Adds a tile of 16 rows times its rows' factors. In each of three steps a lane keeps half of its columns
  // and gives the other half away.
  __device__ __forceinline__ void add(const Rows& rows, float factor, float factor_below) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float v[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      v[i] = fmaf(rows[i / 2][i % 2], factor, rows[i / 2][2 + i % 2] * factor_below);
    give_half<8>(v, lane), give_half<4>(v, lane), give_half<2>(v, lane);
    total = {total.x + v[0], total.y + v[1]};
  }

 private:
  template <int kHalf>
  static __device__ __forceinline__ void give_half(float (&v)[16], int lane) {
    const bool last = lane & (2 * kHalf);
#pragma unroll
    for (int i = 0; i < kHalf; ++i)
      v[i] = (last ? v[i + kHalf] : v[i]) + __shfl_xor_sync(~0u, last ? v[i] : v[i + kHalf], 2 * kHalf);
  }
};

// Writes a warp's partial sums of a head of an image; `dout` has the sums of all rows in each of its rows,
// and one warp writes them.
__device__ __forceinline__ void write_columns(const AttentionGradCall& call, int image, int head, int warp,
                                              float2 dq, const QueryColumns::Rows& dout) {
  const int size = static_cast<int>(call.head_size), lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t across = call.heads * call.head_size;
  float* row =
      call.sums.partials + (static_cast<int64_t>(image) * kGroupParts + warp) * 3 * across + head * size;
  const auto put = [&](int matrix, int column, float2 value) {
    if (column < size) *reinterpret_cast<float2*>(row + matrix * across + column) = value;
  };
  put(0, 2 * lane, dq);
  put(1, 2 * lane, {0, 0});
  if (warp != 0) return put(2, 2 * lane, {0, 0});
#pragma unroll
  for (int n = 0; n < QueryColumns::kColumns / 8; ++n)
    if (lane < 4) put(2, 8 * n + 2 * lane, {dout[n][0], dout[n][1]});
}

}  // namespace vitrail::cuda
