// The tiles of the GEMM for few rows: their place in shared memory, the loads that keep its ring full, and
// the steps that multiply what it holds. Knows nothing of what becomes of the sums.
#pragma once

#include <algorithm>

#include "backend/cuda/api/gemms.h"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/hopper_columns.cuh"
#include "backend/cuda/device/launch.cuh"

namespace vitrail::cuda::small {

// A step's terms, and the bytes of a row of them in shared memory.
constexpr int kDepth = kStepTerms, kLineBytes = kDepth * 2;
constexpr int kGroupThreads = 128, kGroups = 2;
constexpr int kWorkers = kGroups * kGroupThreads, kThreads = kWorkers + 32;
constexpr uint32_t kRoom = 113000;  // for the ring of tiles, with two blocks on a multiprocessor
constexpr uint32_t kAlignment = 1024;

// The shape of a tile, and where its parts lie in shared memory. After the GEMM the sums lie where the ring
// was, in layers that are still to be added; rows of them are that long that the writes of a warp meet no
// bank twice.
template <int kTileColumns>
struct Cut {
  static constexpr int kColumns = kTileColumns;
  static constexpr uint32_t kABytes = kSmallTileRows * kLineBytes,
                            kSlotBytes = kABytes + kColumns * kLineBytes;
  // Each slot is read by the same group always, which so sees every phase of its barrier.
  static constexpr int kSlots = std::min<int>(kRoom / kSlotBytes, 8) / kGroups * kGroups;
  static constexpr int kStride = kColumns + 8, kLayerBytes = kSmallTileRows * kStride * 4;
  static constexpr uint32_t kBiasAt = kSlots * kSlotBytes, kScaleAt = kBiasAt + kColumns * 4;
  static constexpr uint32_t kBarriersAt = kScaleAt + kColumns * 4;
  static constexpr uint32_t kSharedBytes = kBarriersAt + 2 * kSlots * 8 + kAlignment;
  // A worker finishes so many times four columns of a row at most.
  static constexpr int kItems = kSmallTileRows * kColumns / 4 / kWorkers;
  // Says whether there are registers for the residual during the GEMM.
  static constexpr bool kHoldsResidual = kItems * 2 + kColumns / 2 <= 64;
  static_assert(kGroups * kLayerBytes <= kBiasAt && kStride % 32 == 8);
};

struct SmallMaps {
  CUtensorMap a, b;
};
struct SmallWork {
  int m, n, steps, down, splits;  // down: tiles in a column of tiles
  bool early;                     // b, bias and scale may be read before the launch before this one is done
  Elements d, bias, scale, residual;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <typename C>
struct Room {
  char* start;
  uint32_t base;

  __device__ explicit Room(char* shared) {
    base = (shared_address(shared) + kAlignment - 1) / kAlignment * kAlignment;
    start = shared + (base - shared_address(shared));
  }
  __device__ uint32_t a(int slot) const { return base + slot * C::kSlotBytes; }
  __device__ uint32_t b(int slot) const { return a(slot) + C::kABytes; }
  __device__ float* sums() const { return reinterpret_cast<float*>(start); }
  __device__ float* bias() const { return reinterpret_cast<float*>(start + C::kBiasAt); }
  __device__ float* scale() const { return reinterpret_cast<float*>(start + C::kScaleAt); }
  __device__ uint32_t full(int slot) const { return base + C::kBarriersAt + slot * 8; }
  __device__ uint32_t empty(int slot) const { return full(C::kSlots + slot); }
};

// Holds what a block computes: the steps of its share of a tile.
struct Share {
  int row, column, rank, first, steps;

  __device__ Share(const SmallWork& w, int columns) {
    const int tile = static_cast<int>(blockIdx.x) / w.splits;
    rank = static_cast<int>(blockIdx.x) % w.splits;
    row = tile % w.down * kSmallTileRows, column = tile / w.down * columns;
    first = w.steps * rank / w.splits, steps = w.steps * (rank + 1) / w.splits - first;
  }
};

// The loads of a block's steps into its ring; one thread runs them.
template <typename C>
struct Loads {
  const SmallMaps& maps;
  const Share& share;
  const Room<C>& at;

  __device__ void b(int step) const {
    const uint32_t full = at.full(step % C::kSlots);
    barrier_arrive_with(full, C::kSlotBytes);
    tma_load(at.b(step % C::kSlots), maps.b, (share.first + step) * kDepth, share.column, full);
  }
  __device__ void a(int step) const {
    tma_load(at.a(step % C::kSlots), maps.a, (share.first + step) * kDepth, share.row,
             at.full(step % C::kSlots));
  }
  __device__ int ahead() const { return min(share.steps, C::kSlots); }
  // Fills the ring's half for b; one of the blocks that read the rest of b brings it to the L2 cache.
  __device__ void start_b() const {
    for (int step = 0; step < ahead(); ++step) b(step);
    if (share.row == 0)
      for (int step = ahead(); step < share.steps; ++step)
        tma_prefetch(maps.b, (share.first + step) * kDepth, share.column);
  }
  __device__ void start_a() const {
    for (int step = 0; step < ahead(); ++step) a(step);
  }
  // Loads the other steps, each as soon as all warps have read what its slot holds.
  __device__ void go_on() const {
    for (int step = C::kSlots; step < share.steps; ++step) {
      barrier_wait(at.empty(step % C::kSlots), (step / C::kSlots + 1) % 2);
      b(step);
      a(step);
    }
  }
};

// A group multiplies every other step. It waits for its GEMM, under which that of the other group is issued,
// so that the slot is free at once.
template <typename T, typename C, int kSums>
__device__ __forceinline__ void multiply_steps(const Room<C>& at, int steps, int group,
                                               float (&sums)[kSums]) {
  int slot = group;
  uint32_t parity = 0;
#pragma unroll
  for (float& sum : sums) sum = 0;
  for (int step = group; step < steps; step += kGroups) {
    barrier_wait(at.full(slot), parity);
    const uint64_t a = group_rows(at.a(slot)), b = group_rows(at.b(slot));
    group_fence();
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
      group_columns_gemm<T>(sums, a + k * kNextTerms, b + k * kNextTerms, 1);
    group_commit();
    group_wait<0>();
    settle_sums(sums);
    if (threadIdx.x % 32 == 0) barrier_arrive(at.empty(slot));
    if ((slot += kGroups) >= C::kSlots) slot -= C::kSlots, parity ^= 1;
  }
}

// Prepares the ring, and loads of b what it holds, where it may be read already.
template <typename C>
__device__ __forceinline__ void begin(const SmallWork& w, const Loads<C>& loads) {
  for (int slot = 0; slot < C::kSlots; ++slot) {
    barrier_init(loads.at.full(slot), 1);
    barrier_init(loads.at.empty(slot), kGroupThreads / 32);
  }
  barrier_publish();
  if (!w.early) return;
  let_next_start();
  loads.start_b();
}

template <typename C>
__device__ __forceinline__ void load(const SmallWork& w, const Loads<C>& loads) {
  await_launches();
  if (!w.early) loads.start_b();
  loads.start_a();
  loads.go_on();
}

#endif

}  // namespace vitrail::cuda::small
