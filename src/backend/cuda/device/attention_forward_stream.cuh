// Attention over long sequences on Hopper: what a warp group does with its 64 queries and tiles of keys and
// values. Knows not how tiles come into shared memory.
#pragma once

#include "backend/cuda/device/attention_stream.cuh"
#include "backend/cuda/device/attention_tiles.cuh"

namespace vitrail::cuda::stream_forward {

inline constexpr int kGroups = 2, kThreads = (kGroups + 1) * kGroupThreads, kKeys = 128, kSlots = 2;
inline constexpr uint32_t kTileBytes = kKeys * kRowBytes;
inline constexpr uint32_t kOwnAt = 2 * kSlots * kTileBytes, kBarriersAt = kOwnAt + kGroups * kOwnBytes;
inline constexpr uint32_t kBytes = kBarriersAt + (4 * kSlots + 2 * kGroups) * 8 + kSwizzleBytes;

struct Work {
  int heads, tasks, tiles;  // heads of an image; tasks of all blocks; tasks of a head
  int queries, keys, pieces;
  float unit;
  HeadRows out;
  float* log_sums;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Places {
  uint32_t base;

  __device__ explicit Places(const char* shared)
      : base((shared_address(shared) + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes) {}
  __device__ uint32_t k(int slot) const { return base + 2 * slot * kTileBytes; }
  __device__ uint32_t v(int slot) const { return k(slot) + kTileBytes; }
  __device__ uint32_t q(int group) const { return base + kOwnAt + group * kOwnBytes; }
  __device__ uint32_t barrier(int i) const { return base + kBarriersAt + i * 8; }
  __device__ uint32_t k_full(int slot) const { return barrier(4 * slot); }
  __device__ uint32_t v_full(int slot) const { return barrier(4 * slot + 1); }
  __device__ uint32_t k_empty(int slot) const { return barrier(4 * slot + 2); }
  __device__ uint32_t v_empty(int slot) const { return barrier(4 * slot + 3); }
  __device__ uint32_t q_full(int group) const { return barrier(4 * kSlots + 2 * group); }
  __device__ uint32_t q_empty(int group) const { return barrier(4 * kSlots + 2 * group + 1); }

  __device__ void init() const {
    for (int slot = 0; slot < kSlots; ++slot) {
      barrier_init(k_full(slot), 1);
      barrier_init(v_full(slot), 1);
      barrier_init(k_empty(slot), 4 * kGroups);
      barrier_init(v_empty(slot), 4 * kGroups);
    }
    for (int group = 0; group < kGroups; ++group) {
      barrier_init(q_full(group), 1);
      barrier_init(q_empty(group), 4);
    }
    barrier_publish();
  }
};

// The 64 queries of a group; a lane has values of rows lane / 4 and the one 8 below of its warp's 16.
template <typename T>
struct Queries {
  const Work& w;
  const Places at;
  const int group, lane;
  uint32_t q[4][4];
  float o[8][4], top[2], sum[2];
  RingPlace<kSlots> ring;

  __device__ __forceinline__ void leave(uint32_t empty) const {
    if (lane == 0) barrier_arrive(empty);
  }
  __device__ __forceinline__ void begin(int warp, uint32_t parity) {
    barrier_wait(at.q_full(group), parity);
#pragma unroll
    for (int step = 0; step < 4; ++step)
      load16x16(q[step], at.q(group) + warp * kOwnBytes / 4 + Swizzle<64>::lane_offset(lane, step));
    leave(at.q_empty(group));
    for (auto& row : o)
      for (float& x : row) x = 0;
    for (int row = 0; row < 2; ++row) top[row] = -1e30f, sum[row] = 0;
  }

  // Turns scores into weights relative to the largest so far; returns by what earlier sums are to be
  // multiplied.
  template <int kEights>
  __device__ __forceinline__ float2 weigh_scores(float (&s)[kEights][4]) {
    float keep[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float now = top[row];
#pragma unroll
      for (int n = 0; n < kEights; ++n) now = fmaxf(now, fmaxf(s[n][2 * row], s[n][2 * row + 1]));
      now = quad_max(now);
      keep[row] = exp2_fast((top[row] - now) * w.unit);
      top[row] = now;
      const float shift = now * w.unit;
      float left = 0, right = 0;
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
        s[n][2 * row] = exp2_fast(fmaf(s[n][2 * row], w.unit, -shift));
        s[n][2 * row + 1] = exp2_fast(fmaf(s[n][2 * row + 1], w.unit, -shift));
        left += s[n][2 * row], right += s[n][2 * row + 1];
      }
      sum[row] = fmaf(sum[row], keep[row], left + right);
    }
    return make_float2(keep[0], keep[1]);
  }
  __device__ __forceinline__ void rescale(float2 keep) {
#pragma unroll
    for (auto& row : o) row[0] *= keep.x, row[1] *= keep.x, row[2] *= keep.y, row[3] *= keep.y;
  }

  using Scores = float[kKeys / 8][4];
  using Weights = uint32_t[kKeys / 16][4];

  // The weights of the next tile, while the values of the present one are added.
  __device__ __forceinline__ void attend_next(Scores& s, Weights& p) {
    const RingPlace<kSlots> before = ring;
    ring.next();
    barrier_wait(at.k_full(ring.slot), ring.parity);
    group_fence();
    start_dots<T>(s, q, at.k(ring.slot));
    group_commit();
    barrier_wait(at.v_full(before.slot), before.parity);
    start_weigh<T>(o, p, at.v(before.slot));
    group_commit();
    group_wait<1>();
    settle(s);
    leave(at.k_empty(ring.slot));
    const float2 keep = weigh_scores(s);
    group_wait<0>();
    settle(o);
    settle(p);
    leave(at.v_empty(before.slot));
    rescale(keep);
    pack_operands<T>(p, s);
  }
  // All whole tiles of keys.
  __device__ __forceinline__ void attend(int tiles) {
    Scores s;
    Weights p;
    barrier_wait(at.k_full(ring.slot), ring.parity);
    group_fence();
    start_dots<T>(s, q, at.k(ring.slot));
    group_commit();
    group_wait<0>();
    settle(s);
    leave(at.k_empty(ring.slot));
    rescale(weigh_scores(s));
    pack_operands<T>(p, s);
#pragma unroll 1
    for (int tile = 1; tile < tiles; ++tile) attend_next(s, p);
    barrier_wait(at.v_full(ring.slot), ring.parity);
    group_fence();
    start_weigh<T>(o, p, at.v(ring.slot));
    group_commit();
    group_wait<0>();
    settle(o);
    leave(at.v_empty(ring.slot));
    ring.next();
  }

  // A part of the last tile, of which `keys` keys exist from row `from` on.
  template <int kEights>
  __device__ __forceinline__ void attend_part(int from, int keys) {
    float s[kEights][4];
    uint32_t p[kEights / 2][4];
    group_fence();
    start_dots<T>(s, q, at.k(ring.slot) + from * kRowBytes);
    group_commit();
    group_wait<0>();
    settle(s);
    mask_from(s, keys, lane);
    rescale(weigh_scores(s));
    pack_operands<T>(p, s);
    group_fence();
    start_weigh<T>(o, p, at.v(ring.slot) + from * kRowBytes);
    group_commit();
    group_wait<0>();
    settle(o);
  }
  __device__ __forceinline__ void attend_rest(int keys) {
    barrier_wait(at.k_full(ring.slot), ring.parity);
    barrier_wait(at.v_full(ring.slot), ring.parity);
    int done = 0;
#pragma unroll 1
    while (keys - done > 48) attend_part<8>(done, keys - done), done += 64;
#pragma unroll 1
    for (; done < keys; done += 16) attend_part<2>(done, keys - done);
    leave(at.k_empty(ring.slot));
    leave(at.v_empty(ring.slot));
    ring.next();
  }

  __device__ __forceinline__ void end(int index, int first) const {
    const float total[2] = {quad_sum(sum[0]), quad_sum(sum[1])};
    store_rows<T, 64>(HeadStart(w.out, index / w.heads, index % w.heads), first, w.queries, w.pieces, o,
                      __fdividef(1, total[0]), __fdividef(1, total[1]));
    if (!w.log_sums || lane % 4 != 0) return;
    for (int row = 0; row < 2; ++row) {
      const int query = first + lane / 4 + 8 * row;
      if (query < w.queries)
        w.log_sums[static_cast<int64_t>(index) * w.queries + query] = top[row] * w.unit + log2f(total[row]);
    }
  }
};

#endif

}  // namespace vitrail::cuda::stream_forward
