// Tensor-core GEMMs of a warp group (wgmma: four consecutive warps), with 16-bit operands and f32 sums: 64
// rows in registers, 16 of each warp, times tiles that all four read from shared memory. They need compute
// capability 9.0; kernels that use them are empty elsewhere. Knows no op.
//
// Fragments are those of mma.cuh, each warp having 16 rows. Tiles in shared memory are rows of 64 elements,
// permuted by Swizzle<64>, from a start on 1024 bytes.
#pragma once

#include <cuda_runtime.h>

#include "backend/cuda/device/mma.cuh"
#include "base/error.h"

namespace vitrail::cuda {

// Returns whether this build has such a kernel for the GPU: an empty one needs hardly any register.
template <typename F>
bool has_groups(F* kernel) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.numRegs > 64;
}

template <typename F>
void require_groups(F* kernel) {
  VT_REQUIRE(has_groups(kernel), ErrorKind::kDevice,
             "the plugin has no kernels of compute capability 9.0 with Hopper's own instructions; build it "
             "for the architecture 90a");
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Must precede the first wgmma after its registers were written by other instructions.
__device__ __forceinline__ void group_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void group_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until all but the kLeft latest commits are done.
template <int kLeft>
__device__ __forceinline__ void group_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// Makes this thread's writes to shared memory visible to wgmma and TMA; a barrier must follow.
__device__ __forceinline__ void group_publish() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The descriptor of the rows from `address` on, eight of them every 1024 bytes.
__device__ __forceinline__ uint64_t group_rows(uint32_t address) {
  constexpr uint64_t kEight = 1024 / 16, kSwizzle128 = uint64_t{1} << 62;
  return kSwizzle128 | kEight << 32 | kEight << 16 | (address & 0x3ffff) / 16;
}
// The distance to the next sixteen terms in a descriptor: along the rows, and from row to row.
inline constexpr uint64_t kNextTerms = 32 / 16, kNextRows = 16 * 128 / 16;

#define VT_TEN(tens)                                                                                   \
  "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens \
  "7, %" #tens "8, %" #tens "9"
#define VT_FIRST_TEN "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9"
#define VT_FOUR(how, d, i) how(d[i][0]), how(d[i][1]), how(d[i][2]), how(d[i][3])
#define VT_EIGHT(how, d, i)                                                                   \
  VT_FOUR(how, d, i), VT_FOUR(how, d, i + 1), VT_FOUR(how, d, i + 2), VT_FOUR(how, d, i + 3), \
      VT_FOUR(how, d, i + 4), VT_FOUR(how, d, i + 5), VT_FOUR(how, d, i + 6), VT_FOUR(how, d, i + 7)

// The operands that follow are the sums, the A operand and the rows. `how` is "=f" where they
// are overwritten and "+f" where they are added to.
#define VT_GROUP_MMA(columns, type, add)                                                 \
  "{ .reg .pred add; setp.ne.b32 add, " add                                              \
  ", 0; "                                                                                \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" VT_FIRST_TEN \
  ", " VT_TEN(1) ", " VT_TEN(2) ", "
// The matrix multiplication with 208 columns.
#define VT_DOTS(type, how, add) \
  asm volatile(VT_GROUP_MMA("208", type, add) VT_TEN(3) ", " VT_TEN(4) ", " VT_TEN(5) ", " VT_TEN(6) ", " \
               VT_TEN(7) ", " VT_TEN(8) ", " VT_TEN(9) ", %100, %101, %102, %103}, " \
               "{%104, %105, %106, %107}, %108, add, 1, 1, 0; }" \
               : VT_EIGHT(how, d, 0), VT_EIGHT(how, d, 8), VT_EIGHT(how, d, 16), VT_FOUR(how, d, 24), \
                 VT_FOUR(how, d, 25) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows))
// The matrix multiplication with 64 columns, transposed.
#define VT_WEIGH(type, how, add)                                                                     \
  asm volatile(VT_GROUP_MMA("64", type, add) "%30, %31}, {%32, %33, %34, %35}, %36, add, 1, 1, 1; }" \
               : VT_EIGHT(how, d, 0)                                                                 \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows))

// d = a rows^T for 16 terms of 208 rows, or d += the same.
template <typename T, bool kAdd>
__device__ __forceinline__ void group_dots(float (&d)[26][4], const uint32_t (&a)[4], uint64_t rows) {
  constexpr bool kHalf = std::is_same_v<T, __half>;
  if constexpr (kHalf && kAdd) VT_DOTS("f16", "+f", "1");
  if constexpr (kHalf && !kAdd) VT_DOTS("f16", "=f", "0");
  if constexpr (!kHalf && kAdd) VT_DOTS("bf16", "+f", "1");
  if constexpr (!kHalf && !kAdd) VT_DOTS("bf16", "=f", "0");
}
// d = a rows for 16 rows of 64 elements, or d += the same.
template <typename T, bool kAdd>
__device__ __forceinline__ void group_weigh(float (&d)[8][4], const uint32_t (&a)[4], uint64_t rows) {
  constexpr bool kHalf = std::is_same_v<T, __half>;
  if constexpr (kHalf && kAdd) VT_WEIGH("f16", "+f", "1");
  if constexpr (kHalf && !kAdd) VT_WEIGH("f16", "=f", "0");
  if constexpr (!kHalf && kAdd) VT_WEIGH("bf16", "+f", "1");
  if constexpr (!kHalf && !kAdd) VT_WEIGH("bf16", "=f", "0");
}

#undef VT_WEIGH
#undef VT_DOTS
#undef VT_GROUP_MMA
#undef VT_EIGHT
#undef VT_FOUR
#undef VT_FIRST_TEN
#undef VT_TEN

#endif

}  // namespace vitrail::cuda
