// The gradient of attention over long sequences on Hopper: what a warp group does with its 64 own rows and
// tiles of 64 rows of the other side. Knows neither how tiles come into shared memory nor which rows are
// whose.
#pragma once

#include "backend/cuda/device/attention_backward.cuh"
#include "backend/cuda/device/attention_stream.cuh"

namespace vitrail::cuda::stream_grad {

inline constexpr int kGroups = 2, kThreads = (kGroups + 1) * kGroupThreads, kSlots = 4;
inline constexpr uint32_t kFactBytes = 64 * sizeof(QueryFacts), kTileBytes = kOwnBytes;
// A slot holds a tile of either stream; the facts of a tile of queries lie apart. A group's own rows are
// queries, output gradients and outputs, or keys and values.
inline constexpr uint32_t kOwnAt = kSlots * 2 * kTileBytes, kFactsAt = kOwnAt + kGroups * 3 * kOwnBytes;
inline constexpr uint32_t kBarriersAt = kFactsAt + kSlots * kFactBytes;
inline constexpr uint32_t kBytes = kBarriersAt + (2 * kSlots + 2 * kGroups) * 8 + kSwizzleBytes;

struct Work {
  int heads, tasks, tiles;   // heads of an image; tasks of all blocks; tasks of a head
  int rows, others, pieces;  // rows that groups own, and rows they meet
  float scale;
  const float* log_sums;
  float* facts;            // for every 64 queries, 64 logarithms and 64 means
  HeadRows first, second;  // dq; or dk and dv
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Places {
  const char* start;
  uint32_t base;

  __device__ explicit Places(const char* shared) {
    base = (shared_address(shared) + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes;
    start = shared + (base - shared_address(shared));
  }
  __device__ uint32_t tile(int slot, int stream) const { return base + (2 * slot + stream) * kTileBytes; }
  __device__ uint32_t own(int group, int i) const { return base + kOwnAt + (3 * group + i) * kOwnBytes; }
  __device__ uint32_t facts(int slot) const { return base + kFactsAt + slot * kFactBytes; }
  // The facts of columns 8 n + 2t and 8 n + 2t + 1 (t = lane % 4) from a slot on.
  __device__ float2 fact(int slot, int which, int n, int lane) const {
    return *reinterpret_cast<const float2*>(start + kFactsAt + slot * kFactBytes +
                                            4 * (64 * which + 8 * n + 2 * (lane % 4)));
  }
  __device__ uint32_t barrier(int i) const { return base + kBarriersAt + i * 8; }
  __device__ uint32_t full(int slot) const { return barrier(slot); }
  __device__ uint32_t empty(int slot) const { return barrier(kSlots + slot); }
  __device__ uint32_t own_full(int group) const { return barrier(2 * kSlots + group); }
  __device__ uint32_t own_empty(int group) const { return barrier(2 * kSlots + kGroups + group); }

  __device__ void init() const {
    for (int slot = 0; slot < kSlots; ++slot)
      barrier_init(full(slot), 1), barrier_init(empty(slot), 4 * kGroups);
    for (int group = 0; group < kGroups; ++group)
      barrier_init(own_full(group), 1), barrier_init(own_empty(group), 4);
    barrier_publish();
  }
};

// The 64 rows of a group, of which a warp has 16 and a lane two: lane / 4 and the one 8 below.
template <typename T, bool kOfKeys>
struct Rows {
  const Work& w;
  const Places& at;
  const int group, lane, warp;
  uint32_t left[4][4], right[4][4];  // queries and output gradients, or keys and values
  float first[8][4], second[8][4];   // dq; or dk and dv
  float log_sum[2], mean[2];         // of own queries
  RingPlace<kSlots> ring;

  __device__ __forceinline__ void load(uint32_t (&own)[4][4], int i) const {
#pragma unroll
    for (int step = 0; step < 4; ++step)
      load16x16(own[step], at.own(group, i) + warp * kOwnBytes / 4 + Swizzle<64>::lane_offset(lane, step));
  }
  // The mean of a query's weights' gradients is its output times its output gradient.
  __device__ __forceinline__ void find_facts(int index, int row) {
    uint32_t out[4][4];
    load(out, 2);
    mean[0] = mean[1] = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float2 a = unpack2<T>(out[i / 4][i % 4]), b = unpack2<T>(right[i / 4][i % 4]);
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
  __device__ __forceinline__ void begin(int index, int row, uint32_t parity) {
    barrier_wait(at.own_full(group), parity);
    load(left, 0);
    load(right, 1);
    if constexpr (!kOfKeys) find_facts(index, row);
    if (lane == 0) barrier_arrive(at.own_empty(group));
#pragma unroll
    for (int i = 0; i < 32; ++i) first[i / 4][i % 4] = second[i / 4][i % 4] = 0;
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
    RingPlace<kSlots> next = ring;
    next.next();
    group_fence();
    start_dots<T>(dp, right, at.tile(slot, 1));
    group_commit();
    if (kLast && !kOfKeys && columns < 64) mask_from(s, columns, lane);
    weigh(p, s, slot);
    if constexpr (!kLast) barrier_wait(at.full(next.slot), next.parity);
    if constexpr (kOfKeys || !kLast) {
      group_fence();
      if constexpr (!kLast) start_dots<T>(s, left, at.tile(next.slot, 0));
      if constexpr (kOfKeys) start_weigh<T>(second, p, at.tile(slot, 1));
      group_commit();
      group_wait<1>();
    } else {
      group_wait<0>();
    }
    settle(dp);
    differentiate(ds, p, dp, slot);
    group_fence();
    start_weigh<T>(first, ds, at.tile(slot, 0));
    group_commit();
    group_wait<0>();
    settle(s);
    settle(first);
    if constexpr (kOfKeys) settle(second);
    if (lane == 0) barrier_arrive(at.empty(slot));
    ring = next;
  }
  __device__ __forceinline__ void meet_tiles(int tiles, int columns) {
    float s[8][4];
    barrier_wait(at.full(ring.slot), ring.parity);
    group_fence();
    start_dots<T>(s, left, at.tile(ring.slot, 0));
    group_commit();
    group_wait<0>();
    settle(s);
#pragma unroll 1
    for (int tile = 1; tile < tiles; ++tile) meet<false>(s, 64);
    meet<true>(s, columns);
  }
  // Up to 16 rows at the end of the other side.
  __device__ __forceinline__ void meet_few(int columns) {
    float s[2][4], dp[2][4];
    uint32_t p[1][4], ds[1][4];
    const int slot = ring.slot;
    barrier_wait(at.full(slot), ring.parity);
    group_fence();
    start_dots<T>(s, left, at.tile(slot, 0));
    start_dots<T>(dp, right, at.tile(slot, 1));
    group_commit();
    group_wait<0>();
    settle(s);
    settle(dp);
    if constexpr (!kOfKeys) mask_from(s, columns, lane);
    weigh(p, s, slot);
    differentiate(ds, p, dp, slot);
    group_fence();
    if constexpr (kOfKeys) start_weigh<T>(second, p, at.tile(slot, 1));
    start_weigh<T>(first, ds, at.tile(slot, 0));
    group_commit();
    group_wait<0>();
    settle(first);
    if constexpr (kOfKeys) settle(second);
    if (lane == 0) barrier_arrive(at.empty(slot));
    ring.next();
  }
  __device__ __forceinline__ void end(int index, int row) const {
    const int image = index / w.heads, head = index % w.heads;
    store_rows<T, 64>(HeadStart(w.first, image, head), row, w.rows, w.pieces, first, w.scale, w.scale);
    if constexpr (kOfKeys)
      store_rows<T, 64>(HeadStart(w.second, image, head), row, w.rows, w.pieces, second, 1, 1);
  }
};

#endif

}  // namespace vitrail::cuda::stream_grad
