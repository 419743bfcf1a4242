// The gradient of attention over long sequences on Hopper: what blocks work on, and where tiles, facts and
// barriers stand in shared memory.
#pragma once

#include "backend/cuda/device/attention_backward.cuh"
#include "backend/cuda/device/attention_stream.cuh"

namespace vitrail::cuda::stream_grad {

inline constexpr int kGroups = 2, kThreads = (kGroups + 1) * kGroupThreads;
inline constexpr uint32_t kFactBytes = 64 * sizeof(QueryFacts), kPanelBytes = 64 * kRowBytes;

// Lays out what a block keeps in shared memory. A slot holds a tile of either stream; the facts of a tile of
// queries lie apart. A group's own rows are queries, output gradients and outputs, or keys and values.
template <int kSize>
struct Layout : HeadTile<kSize> {
  static constexpr int kSlots = kSize <= 64 ? 4 : 3;
  static constexpr uint32_t kTileBytes = Layout::bytes(64);
  static constexpr uint32_t kOwnAt = kSlots * 2 * kTileBytes, kFactsAt = kOwnAt + kGroups * 3 * kTileBytes;
  static constexpr uint32_t kBarriersAt = kFactsAt + kSlots * kFactBytes;
  static constexpr uint32_t kBytes = kBarriersAt + (2 * kSlots + 2 * kGroups) * 8 + kSwizzleBytes;
};

// Says what a group keeps in its registers besides sums, by the size of a head and which rows it owns: its
// right and then its left rows, which wgmma otherwise reads from shared memory, and whether it starts the
// scores of the next tile before those of the present one are used up.
template <int kSize, bool kOfKeys>
struct Kept {
  static constexpr bool kRight = kSize <= (kOfKeys ? 96 : 128), kLeft = kSize <= (kOfKeys ? 80 : 96);
  static constexpr bool kAhead = kSize <= (kOfKeys ? 96 : 128);
};

struct Work {
  int heads, tasks, tiles;   // heads of an image; tasks of all blocks; tasks of a head
  int rows, others, pieces;  // rows that groups own, and rows they meet
  float scale;
  const float* log_sums;
  float* facts;            // for every 64 queries, 64 logarithms and 64 means
  HeadRows first, second;  // dq; or dk and dv
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The rows that groups meet, as tiles of 64: `columns` of the last one exist. Up to 16 rows at the end are a
// tile of their own, which comes first.
struct OtherSide {
  int few, tiles, columns;

  __device__ explicit OtherSide(int rows) {
    few = rows > 16 && rows % 64 <= 16 ? rows % 64 : 0;
    tiles = (rows - few + 63) / 64;
    columns = rows - few - 64 * (tiles - 1);
  }
  __device__ int all() const { return tiles + (few > 0); }
  // The tile that is loaded in a step, in units of 64 rows.
  __device__ int loaded(int step) const { return few == 0 ? step : step == 0 ? tiles : step - 1; }
};

template <int kSize>
struct Places : Layout<kSize> {
  using At = Layout<kSize>;
  using At::kSlots;
  const char* start;
  uint32_t base;

  __device__ explicit Places(const char* shared) {
    base = (shared_address(shared) + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes;
    start = shared + (base - shared_address(shared));
  }
  __device__ uint32_t tile(int slot, int stream) const { return base + (2 * slot + stream) * At::kTileBytes; }
  __device__ uint32_t own(int group, int i) const {
    return base + At::kOwnAt + (3 * group + i) * At::kTileBytes;
  }
  __device__ uint32_t facts(int slot) const { return base + At::kFactsAt + slot * kFactBytes; }
  // The facts of columns 8 n + 2t and 8 n + 2t + 1 (t = lane % 4) from a slot on.
  __device__ float2 fact(int slot, int which, int n, int lane) const {
    return *reinterpret_cast<const float2*>(start + At::kFactsAt + slot * kFactBytes +
                                            4 * (64 * which + 8 * n + 2 * (lane % 4)));
  }
  __device__ uint32_t barrier(int i) const { return base + At::kBarriersAt + i * 8; }
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

#endif

}  // namespace vitrail::cuda::stream_grad
