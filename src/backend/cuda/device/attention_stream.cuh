// Defines what the attention kernels for long sequences on Hopper share, forward and backward. Knows not
// where rows come from.
#pragma once

#include "backend/cuda/device/session.cuh"
#include "backend/cuda/device/tensor_maps.cuh"
#include "backend/cuda/device/wgmma_gemms.cuh"

namespace vitrail::cuda {

inline constexpr int kGroupThreads = 128;
inline constexpr uint32_t kRowBytes = 128;       // of a panel of 64 columns
inline constexpr uint32_t kSwizzleBytes = 1024;  // the alignment of tiles

// Rows of a head of kSize elements in shared memory: panels of 64 columns, the last filled up with zeros.
template <int kSize>
struct HeadTile {
  static constexpr int kPanels = (kSize + 63) / 64, kSteps = kSize / 16, kEights = kSize / 8;
  static __host__ __device__ constexpr uint32_t bytes(int rows) { return kPanels * rows * kRowBytes; }
};
// The sizes that kernels are made for; a head is computed as the next larger one, filled up with zeros.
template <typename F>
void for_stream_size(int64_t head_size, const F& run) {
  if (head_size <= 64) return run(std::integral_constant<int, 64>{});
  if (head_size <= 80) return run(std::integral_constant<int, 80>{});
  if (head_size <= 96) return run(std::integral_constant<int, 96>{});
  run(std::integral_constant<int, 128>{});
}

// The task of a block in a round. Its place shifts from round to round, so that no block always gets the
// last, shorter task of a head.
__device__ __forceinline__ int task_of(int round) {
  const int blocks = static_cast<int>(gridDim.x);
  return round * blocks + (static_cast<int>(blockIdx.x) + round) % blocks;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Loads `rows` rows of a head of kSize elements.
template <int kSize>
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap& map, int rows, int row, int head,
                                          int image, uint32_t barrier) {
#pragma unroll
  for (int panel = 0; panel < HeadTile<kSize>::kPanels; ++panel)
    tma_load_rows(to + panel * rows * kRowBytes, map, 64 * panel, row, head, image, barrier);
}
// Loads a warp's 16 of the 64 rows of a group as A operands.
template <int kSteps>
__device__ __forceinline__ void load_own(uint32_t (&own)[kSteps][4], uint32_t rows, int warp, int lane) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
    load16x16(own[step],
              rows + (64 * (step / 4) + 16 * warp) * kRowBytes + Swizzle<64>::lane_offset(lane, step % 4));
}

// Packs accumulators into A operands of 16 terms, the first kEights / 2 of `a`.
template <typename T, int kEights, int kSteps>
__device__ __forceinline__ void pack_operands(uint32_t (&a)[kSteps][4], const float (&s)[kEights][4]) {
  static_assert(kSteps >= kEights / 2);
#pragma unroll
  for (int i = 0; i < 2 * kEights; ++i) {
    const float(&sums)[4] = s[i / 2];
    a[i / 4][i % 4] = pack2<T>(sums[i % 2 * 2], sums[i % 2 * 2 + 1]);
  }
}

// Sets the scores of columns from `columns` on to -inf.
template <int kEights>
__device__ __forceinline__ void mask_from(float (&s)[kEights][4], int columns, int lane) {
#pragma unroll
  for (int i = 0; i < 4 * kEights; ++i)
    if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= columns) s[i / 4][i % 4] = -INFINITY;
}

#endif

}  // namespace vitrail::cuda
