// What the attention kernels for long sequences on Hopper share, forward and backward. Knows not where rows
// come from.
#pragma once

#include "backend/cuda/device/session.cuh"
#include "backend/cuda/device/tensor_maps.cuh"
#include "backend/cuda/device/wgmma_products.cuh"

namespace vitrail::cuda {

inline constexpr int kGroupThreads = 128;
inline constexpr uint32_t kRowBytes = 128, kOwnBytes = 64 * kRowBytes;  // rows of 64 elements, 64 of a group
inline constexpr uint32_t kSwizzleBytes = 1024;                         // the alignment of tiles

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Packs accumulators into A operands of 16 terms.
template <typename T, int kEights>
__device__ __forceinline__ void pack_operands(uint32_t (&a)[kEights / 2][4], const float (&s)[kEights][4]) {
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
