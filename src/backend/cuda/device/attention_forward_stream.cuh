// Attention over long sequences on Hopper: what a warp group does with its 64 queries and tiles of keys and
// values. Knows not how tiles come into shared memory.
#pragma once

#include "backend/cuda/device/attention_stream.cuh"
#include "backend/cuda/device/attention_tiles.cuh"

namespace vitrail::cuda::stream_forward {

inline constexpr int kGroups = 2, kThreads = (kGroups + 1) * kGroupThreads, kKeys = 128;
template <int kSize>
inline constexpr int kSlots = kSize <= 64 ? 2 : 3;
inline constexpr uint32_t kPanelBytes = kKeys * kRowBytes;

// Lays out what a block keeps in shared memory.
template <int kSize>
struct Layout : HeadTile<kSize> {
  static constexpr uint32_t kTileBytes = Layout::bytes(kKeys), kOwnBytes = Layout::bytes(64);
  static constexpr uint32_t kOwnAt = 2 * kSlots<kSize> * kTileBytes,
                            kBarriersAt = kOwnAt + kGroups * kOwnBytes;
  static constexpr uint32_t kBytes = kBarriersAt + (4 * kSlots<kSize> + 2 * kGroups) * 8 + kSwizzleBytes;
};

struct Work {
  int heads, tasks, tiles;  // heads of an image; tasks of all blocks; tasks of a head
  int queries, keys, pieces;
  float unit;
  HeadRows out;
  float* log_sums;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int kSize>
struct Places : Layout<kSize> {
  using At = Layout<kSize>;
  uint32_t base;

  __device__ explicit Places(const char* shared)
      : base((shared_address(shared) + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes) {}
  __device__ uint32_t k(int slot) const { return base + 2 * slot * At::kTileBytes; }
  __device__ uint32_t v(int slot) const { return k(slot) + At::kTileBytes; }
  __device__ uint32_t q(int group) const { return base + At::kOwnAt + group * At::kOwnBytes; }
  __device__ uint32_t barrier(int i) const { return base + At::kBarriersAt + i * 8; }
  __device__ uint32_t k_full(int slot) const { return barrier(4 * slot); }
  __device__ uint32_t v_full(int slot) const { return barrier(4 * slot + 1); }
  __device__ uint32_t k_empty(int slot) const { return barrier(4 * slot + 2); }
  __device__ uint32_t v_empty(int slot) const { return barrier(4 * slot + 3); }
  __device__ uint32_t q_full(int group) const { return barrier(4 * kSlots<kSize> + 2 * group); }
  __device__ uint32_t q_empty(int group) const { return barrier(4 * kSlots<kSize> + 2 * group + 1); }

  __device__ void init() const {
    for (int slot = 0; slot < kSlots<kSize>; ++slot) {
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
template <typename T, int kSize>
struct Queries {
  const Work& w;
  const Places<kSize> at;
  const int group, lane;
  uint32_t q[HeadTile<kSize>::kSteps][4];
  float o[HeadTile<kSize>::kEights][4], top[2], sum[2];
  RingPlace<kSlots<kSize>> ring;

  // Returns whether the place of the queries is given back after the last wgmma only. The next queries were
  // seen to overtake loads of these into registers that precede the arrival; where there are more tiles than
  // slots, they come after the first one, for which these loads are done.
  __device__ __forceinline__ bool returns_late() const { return w.keys <= kSlots<kSize> * kKeys; }
  // The warp has read what the barrier guards.
  __device__ __forceinline__ void leave(uint32_t empty) const {
    __syncwarp();
    if (lane == 0) barrier_arrive(empty);
  }
  __device__ __forceinline__ void begin(int warp, uint32_t parity) {
    barrier_wait(at.q_full(group), parity);
    __syncwarp();
    load_own(q, at.q(group), warp, lane);
    if (!returns_late()) leave(at.q_empty(group));
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

  using Weights = uint32_t[kKeys / 16][4];

  // The scores of 8 kEights keys become weights, of which `keys` keys exist; then `meanwhile` ends what runs
  // beside them.
  template <int kEights, typename F>
  __device__ __forceinline__ void take_scores(Weights& p, float (&s)[kEights][4], int keys,
                                              const F& meanwhile) {
    settle(s);
    leave(at.k_empty(ring.slot));
    if (keys < 8 * kEights) mask_from(s, keys, lane);
    const float2 keep = weigh_scores(s);
    meanwhile();
    rescale(keep);
    pack_operands<T>(p, s);
  }
  // The weights of the first tile.
  __device__ __forceinline__ void attend_first(Weights& p, int keys) {
    float s[kKeys / 8][4];
    barrier_wait(at.k_full(ring.slot), ring.parity);
    group_fence();
    start_dots<T>(s, q, at.k(ring.slot), kPanelBytes);
    group_commit();
    group_wait<0>();
    take_scores(p, s, keys, [] {});
  }
  // The weights of the next tile, while the values of the present one, which is whole, are added.
  template <int kEights>
  __device__ __forceinline__ void attend_next(Weights& p, int keys) {
    float s[kEights][4];
    const RingPlace<kSlots<kSize>> before = ring;
    ring.next();
    barrier_wait(at.k_full(ring.slot), ring.parity);
    group_fence();
    start_dots<T>(s, q, at.k(ring.slot), kPanelBytes);
    group_commit();
    barrier_wait(at.v_full(before.slot), before.parity);
    group_fence();
    start_weigh<T>(o, p, at.v(before.slot), kPanelBytes);
    group_commit();
    group_wait<1>();
    take_scores(p, s, keys, [&] {
      group_wait<0>();
      settle(o);
      settle(p);
      leave(at.v_empty(before.slot));
    });
  }
  // The values of the last tile, 16 kSteps keys.
  template <int kSteps>
  __device__ __forceinline__ void finish(const Weights& p) {
    barrier_wait(at.v_full(ring.slot), ring.parity);
    group_fence();
    start_weigh<T, kSteps>(o, p, at.v(ring.slot), kPanelBytes);
    group_commit();
    group_wait<0>();
    settle(o);
    leave(at.v_empty(ring.slot));
    if (returns_late()) leave(at.q_empty(group));
    ring.next();
  }
  template <int kEights>
  __device__ __forceinline__ void attend_last(Weights& p, int keys) {
    attend_next<kEights>(p, keys);
    finish<kEights / 2>(p);
  }
  __device__ __forceinline__ void attend(int keys) {
    Weights p;
    attend_first(p, keys);
#pragma unroll 1
    for (keys -= kKeys; keys >= kKeys; keys -= kKeys) attend_next<kKeys / 8>(p, kKeys);
    if (keys <= 0)
      finish<kKeys / 16>(p);
    else if (keys <= 16)
      attend_last<2>(p, keys);
    else if (keys <= 64)
      attend_last<8>(p, keys);
    else if (keys <= 80)
      attend_last<10>(p, keys);
    else
      attend_last<kKeys / 8>(p, keys);
  }

  // A group without queries only lets the tiles pass.
  __device__ __forceinline__ void skip(uint32_t parity, int tiles) {
    barrier_wait(at.q_full(group), parity);
    leave(at.q_empty(group));
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile, ring.next()) {
      barrier_wait(at.k_full(ring.slot), ring.parity);
      leave(at.k_empty(ring.slot));
      barrier_wait(at.v_full(ring.slot), ring.parity);
      leave(at.v_empty(ring.slot));
    }
  }

  __device__ __forceinline__ void end(int index, int first) const {
    const float total[2] = {quad_sum(sum[0]), quad_sum(sum[1])};
    store_rows<T, kSize>(HeadStart(w.out, index / w.heads, index % w.heads), first, w.queries, w.pieces, o,
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
