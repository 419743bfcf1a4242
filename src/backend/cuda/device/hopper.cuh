// Thin wrappers of instructions of compute capability 9.0 besides those of wgmma.cuh: barriers in shared
// memory, TMA loads and stores, and GEMMs whose operands both lie in shared memory. Knows no op.
#pragma once

#include <cuda.h>
#include <cuda_fp8.h>

#include "backend/cuda/device/wgmma.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace vitrail::cuda {

__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes the initialised barriers visible to the TMA too, after the threads have synchronised.
__device__ __forceinline__ void barrier_publish() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives at the barrier; the phase then also waits for `bytes` bytes of TMA loads.
__device__ __forceinline__ void barrier_arrive_with(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile(
        "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}

// Loads a box of a matrix, from its column and row on, into shared memory by TMA; the barrier counts its
// bytes.
__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap& map, int column, int row,
                                         uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row)
      : "memory");
}
// Prefetches a box into the L2 cache only.
__device__ __forceinline__ void tma_prefetch(const CUtensorMap& map, int column, int row) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map), "r"(column), "r"(row)
               : "memory");
}
// Stores a box from shared memory by TMA, as a bulk group of its own.
__device__ __forceinline__ void tma_store(uint32_t from, const CUtensorMap& map, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%1, {%2, %3}], [%0];\n"
      " cp.async.bulk.commit_group;" ::"r"(from),
      "l"(&map), "r"(column), "r"(row)
      : "memory");
}
// Waits until all but the kLeft latest TMA stores of this thread have read their shared memory, which may
// then be written again.
template <int kLeft>
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
// Stores four 8x8 matrices of fragments to rows of 16 bytes; each lane provides the address of one row.
__device__ __forceinline__ void store8x8x4(uint32_t address, const uint32_t (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}

// Releases registers of this warp group for the others, or acquires released ones.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// The compiler moves nothing that reads the sums before this call.
__device__ __forceinline__ void settle(float (&d)[96]) {
#pragma unroll
  for (float& x : d) asm volatile("" : "+f"(x)::"memory");
}

// The descriptor of a matrix whose rows do not run along k (see group_rows): `next_columns` is the distance
// in bytes from 64 columns to the next 64.
__device__ __forceinline__ uint64_t group_columns(uint32_t address, uint32_t next_columns) {
  return (group_rows(address) & ~(uint64_t{0x3fff} << 16)) | uint64_t{next_columns / 16} << 16;
}

#define VT_F8(i)                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define VT_F32(i) VT_F8(i), VT_F8(i + 8), VT_F8(i + 16), VT_F8(i + 24)
#define VT_TEN(tens)                                                                                   \
  "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens \
  "7, %" #tens "8, %" #tens "9, "
#define VT_GEMM(terms, type, turned)                                                                       \
  asm volatile(                                                                                            \
      "{\n .reg .pred add;\n setp.ne.b32 add, %98, 0;\n"                                                   \
      " wgmma.mma_async.sync.aligned.m64n192k" terms ".f32." type "." type                                 \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " VT_TEN(1) VT_TEN(2) VT_TEN(3) VT_TEN(4) VT_TEN(5)       \
          VT_TEN(6) VT_TEN(7) VT_TEN(8) "%90, %91, %92, %93, %94, %95}, %96, %97, add, 1, 1" turned ";\n}" \
      : VT_F32(0), VT_F32(32), VT_F32(64)                                                                  \
      : "l"(a), "l"(b), "r"(adds))

// d[64, 192] = a . b^T for 32 bytes of terms, or d += where `adds`; with kAlong false b is stored as [16,
// 192], which e4m3 cannot be.
template <typename T, bool kAlong>
__device__ __forceinline__ void group_gemm(float (&d)[96], uint64_t a, uint64_t b, int adds) {
  constexpr bool kCodes = std::is_same_v<T, __nv_fp8_e4m3>, kHalf = std::is_same_v<T, __half>;
  static_assert(kAlong || !kCodes);
  if constexpr (kCodes) VT_GEMM("32", "e4m3", "");
  if constexpr (!kCodes && kHalf && kAlong) VT_GEMM("16", "f16", ", 0, 0");
  if constexpr (!kCodes && kHalf && !kAlong) VT_GEMM("16", "f16", ", 0, 1");
  if constexpr (!kCodes && !kHalf && kAlong) VT_GEMM("16", "bf16", ", 0, 0");
  if constexpr (!kCodes && !kHalf && !kAlong) VT_GEMM("16", "bf16", ", 0, 1");
}
#undef VT_GEMM
#undef VT_TEN
#undef VT_F32
#undef VT_F8

}  // namespace vitrail::cuda

#endif
