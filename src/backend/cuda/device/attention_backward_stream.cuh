// The gradient of attention over long sequences on Hopper: what a warp group does with its 64 own rows and
// tiles of 64 rows of the other side. Knows neither how tiles come into shared memory nor which rows are
// whose.
#pragma once

#include "backend/cuda/device/attention_backward_layout.cuh"

namespace vitrail::cuda::stream_grad {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The 64 rows of a group, of which a warp has 16 and a lane two: lane / 4 and the one 8 below.
template <typename T, int kSize, bool kOfKeys>
struct Rows {
  using Keeps = Kept<kSize, kOfKeys>;
  using Ring = RingPlace<Layout<kSize>::kSlots>;
  static constexpr int kSteps = HeadTile<kSize>::kSteps, kOwnEights = HeadTile<kSize>::kEights;
  const Work& w;
  const Places<kSize>& at;
  const int group, lane, warp;
  uint32_t left[kSteps][4], right[kSteps][4];         // queries and output gradients, or keys and values
  float first[kOwnEights][4], second[kOwnEights][4];  // dq; or dk and dv
  float log_sum[2], mean[2];                          // of own queries
  Ring ring;

  // The mean of a query's weights' gradients is its output times its output gradient.
  __device__ __forceinline__ void find_facts(int index, int row) {
    uint32_t out[kSteps][4], dout[kSteps][4];
    load_own(out, at.own(group, 2), warp, lane);
    load_own(dout, at.own(group, 1), warp, lane);
    mean[0] = mean[1] = 0;
#pragma unroll
    for (int i = 0; i < 4 * kSteps; ++i) {
      const float2 a = unpack2<T>(out[i / 4][i % 4]), b = unpack2<T>(dout[i / 4][i % 4]);
      mean[i % 2] += a.x * b.x + a.y * b.y;
    }
    for (int half = 0; half < 2; ++half) {
      mean[half] = quad_sum(mean[half]);
      const int query = row + lane / 4 + 8 * half;
      const bool there = query < w.rows;
      // Padding has no weight with any key.
      log_sum[half] = there ? w.log_sums[static_cast<int64_t>(index) * w.rows + query] : INFINITY;
      const int tiles = (w.rows + 63) / 64;
      if (lane % 4 == 0 && query < 64 * tiles) {
        float* facts = w.facts + (static_cast<int64_t>(index) * tiles + query / 64) * 128 + query % 64;
        facts[0] = log_sum[half], facts[64] = mean[half];
      }
    }
  }
  // The warp has read what the barrier guards.
  __device__ __forceinline__ void leave(uint32_t empty) const {
    __syncwarp();
    if (lane == 0) barrier_arrive(empty);
  }
  __device__ __forceinline__ void begin(int index, int row, uint32_t parity) {
    barrier_wait(at.own_full(group), parity);
    __syncwarp();
    if constexpr (Keeps::kLeft) load_own(left, at.own(group, 0), warp, lane);
    if constexpr (Keeps::kRight) load_own(right, at.own(group, 1), warp, lane);
    if constexpr (!kOfKeys) find_facts(index, row);
    if constexpr (Keeps::kLeft) leave(at.own_empty(group));
#pragma unroll
    for (int i = 0; i < 4 * kOwnEights; ++i) first[i / 4][i % 4] = second[i / 4][i % 4] = 0;
  }
  // A group without rows only lets the tiles pass.
  __device__ __forceinline__ void skip(uint32_t parity, int tiles) {
    barrier_wait(at.own_full(group), parity);
    leave(at.own_empty(group));
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile, ring.next()) {
      barrier_wait(at.full(ring.slot), ring.parity);
      leave(at.empty(ring.slot));
    }
  }

  // Starts the matrix multiplication of the left or the right rows with those of a tile.
  template <int kEights>
  __device__ __forceinline__ void start_left(float (&s)[kEights][4], int slot) const {
    if constexpr (Keeps::kLeft)
      start_dots<T>(s, left, at.tile(slot, 0), kPanelBytes);
    else
      start_shared_dots<T, kSteps>(s, at.own(group, 0), kPanelBytes, at.tile(slot, 0), kPanelBytes);
  }
  template <int kEights>
  __device__ __forceinline__ void start_right(float (&dp)[kEights][4], int slot) const {
    if constexpr (Keeps::kRight)
      start_dots<T>(dp, right, at.tile(slot, 1), kPanelBytes);
    else
      start_shared_dots<T, kSteps>(dp, at.own(group, 1), kPanelBytes, at.tile(slot, 1), kPanelBytes);
  }

  template <int kEights>
  __device__ __forceinline__ void weigh(uint32_t (&p)[kEights / 2][4], float (&s)[kEights][4],
                                        int slot) const {
    const float unit = w.scale * kLog2e;
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      float2 upper = make_float2(log_sum[0], log_sum[0]), lower = make_float2(log_sum[1], log_sum[1]);
      if constexpr (kOfKeys) upper = lower = at.fact(slot, 0, n, lane);
      p[n / 2][n % 2 * 2] =
          pack2<T>(exp2_fast(fmaf(s[n][0], unit, -upper.x)), exp2_fast(fmaf(s[n][1], unit, -upper.y)));
      p[n / 2][n % 2 * 2 + 1] =
          pack2<T>(exp2_fast(fmaf(s[n][2], unit, -lower.x)), exp2_fast(fmaf(s[n][3], unit, -lower.y)));
    }
  }
  template <int kEights>
  __device__ __forceinline__ void differentiate(uint32_t (&ds)[kEights / 2][4],
                                                const uint32_t (&p)[kEights / 2][4],
                                                const float (&dp)[kEights][4], int slot) const {
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      float2 upper = make_float2(mean[0], mean[0]), lower = make_float2(mean[1], mean[1]);
      if constexpr (kOfKeys) upper = lower = at.fact(slot, 1, n, lane);
      const float2 above = unpack2<T>(p[n / 2][n % 2 * 2]), below = unpack2<T>(p[n / 2][n % 2 * 2 + 1]);
      ds[n / 2][n % 2 * 2] = pack2<T>(above.x * (dp[n][0] - upper.x), above.y * (dp[n][1] - upper.y));
      ds[n / 2][n % 2 * 2 + 1] = pack2<T>(below.x * (dp[n][2] - lower.x), below.y * (dp[n][3] - lower.y));
    }
  }

  // One tile, whose scores are in `s`; leaves those of the next tile there, unless it is the last, of which
  // `columns` columns exist.
  template <bool kLast>
  __device__ __forceinline__ void meet(float (&s)[8][4], int columns) {
    float dp[8][4];
    uint32_t p[4][4], ds[4][4];
    const int slot = ring.slot;
    Ring next = ring;
    next.next();
    group_fence();
    start_right(dp, slot);
    group_commit();
    if (kLast && !kOfKeys && columns < 64) mask_from(s, columns, lane);
    weigh(p, s, slot);
    if constexpr (!kLast) barrier_wait(at.full(next.slot), next.parity);
    if constexpr (kOfKeys || !kLast) {
      group_fence();
      if constexpr (!kLast) start_left(s, next.slot);
      if constexpr (kOfKeys) start_weigh<T>(second, p, at.tile(slot, 1), kPanelBytes);
      group_commit();
      group_wait<1>();
    } else {
      group_wait<0>();
    }
    settle(dp);
    differentiate(ds, p, dp, slot);
    group_fence();
    start_weigh<T>(first, ds, at.tile(slot, 0), kPanelBytes);
    group_commit();
    group_wait<0>();
    settle(s);
    settle(first);
    if constexpr (kOfKeys) settle(second);
    leave(at.empty(slot));
    ring = next;
  }
  // The scores of the first tile.
  __device__ __forceinline__ void start(float (&s)[8][4]) {
    barrier_wait(at.full(ring.slot), ring.parity);
    group_fence();
    start_left(s, ring.slot);
    group_commit();
    group_wait<0>();
    settle(s);
  }
  // A tile of up to 16 columns before the first one, whose scores are computed meanwhile.
  __device__ __forceinline__ void start_with_few(float (&s)[8][4], int columns) {
    float few[2][4], dp[2][4];
    uint32_t p[1][4], ds[1][4];
    const int slot = ring.slot;
    barrier_wait(at.full(slot), ring.parity);
    group_fence();
    start_left(few, slot);
    start_right(dp, slot);
    group_commit();
    ring.next();
    barrier_wait(at.full(ring.slot), ring.parity);
    group_fence();
    start_left(s, ring.slot);
    group_commit();
    group_wait<1>();
    settle(few);
    settle(dp);
    if constexpr (!kOfKeys) mask_from(few, columns, lane);
    weigh(p, few, slot);
    differentiate(ds, p, dp, slot);
    group_fence();
    if constexpr (kOfKeys) start_weigh<T>(second, p, at.tile(slot, 1), kPanelBytes);
    start_weigh<T>(first, ds, at.tile(slot, 0), kPanelBytes);
    group_commit();
    group_wait<0>();
    settle(s);
    settle(first);
    if constexpr (kOfKeys) settle(second);
    leave(at.empty(slot));
  }
  // One tile, of which `columns` columns exist.
  template <int kEights>
  __device__ __forceinline__ void meet_alone(int columns) {
    float s[kEights][4], dp[kEights][4];
    uint32_t p[kEights / 2][4], ds[kEights / 2][4];
    const int slot = ring.slot;
    barrier_wait(at.full(slot), ring.parity);
    group_fence();
    start_left(s, slot);
    group_commit();
    start_right(dp, slot);
    group_commit();
    group_wait<1>();
    settle(s);
    if (!kOfKeys && columns < 8 * kEights) mask_from(s, columns, lane);
    weigh(p, s, slot);
    group_wait<0>();
    settle(dp);
    group_fence();
    if constexpr (kOfKeys) start_weigh<T>(second, p, at.tile(slot, 1), kPanelBytes);
    group_commit();
    differentiate(ds, p, dp, slot);
    group_fence();
    start_weigh<T>(first, ds, at.tile(slot, 0), kPanelBytes);
    group_commit();
    group_wait<0>();
    settle(first);
    if constexpr (kOfKeys) settle(second);
    leave(at.empty(slot));
    ring.next();
  }
  // All rows of the other side: up to 16 that fill no tile come first.
  __device__ __forceinline__ void meet_all(const OtherSide& others) {
    if constexpr (Keeps::kAhead) {
      float s[8][4];
      others.few > 0 ? start_with_few(s, others.few) : start(s);
#pragma unroll 1
      for (int tile = 1; tile < others.tiles; ++tile) meet<false>(s, 64);
      meet<true>(s, others.columns);
    } else {
      if (others.few > 0) meet_alone<2>(others.few);
#pragma unroll 1
      for (int tile = 1; tile <= others.tiles; ++tile)
        meet_alone<8>(tile < others.tiles ? 64 : others.columns);
    }
  }
  __device__ __forceinline__ void end(int index, int row) const {
    if constexpr (!Keeps::kLeft) leave(at.own_empty(group));
    const int image = index / w.heads, head = index % w.heads;
    store_rows<T, kSize>(HeadStart(w.first, image, head), row, w.rows, w.pieces, first, w.scale, w.scale);
    if constexpr (kOfKeys)
      store_rows<T, kSize>(HeadStart(w.second, image, head), row, w.rows, w.pieces, second, 1, 1);
  }
};

#endif

}  // namespace vitrail::cuda::stream_grad
