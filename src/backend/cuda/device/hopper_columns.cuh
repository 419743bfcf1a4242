// GEMMs of a warp group (see wgmma.cuh) whose operands both lie in shared memory, with 32 to 128 columns, and
// what blocks of a cluster need to read each other's shared memory. Knows no op.
#pragma once

#include "backend/cuda/device/hopper.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace vitrail::cuda {

#define VT_F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define VT_F16(i) VT_F4(i), VT_F4(i + 4), VT_F4(i + 8), VT_F4(i + 12)
#define VT_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define VT_32 VT_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define VT_48 VT_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define VT_64 VT_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define VT_GEMM(columns, type, sums, a, b, adds)                                                    \
  "{\n .reg .pred add;\n setp.ne.b32 add, " adds ", 0;\n wgmma.mma_async.sync.aligned.m64n" columns \
  "k16.f32." type "." type " {" sums "}, " a ", " b ", add, 1, 1, 0, 0;\n}"
#define VT_TERMS "l"(a), "l"(b), "r"(adds)

#define VT_GEMM_32(type) asm volatile(VT_GEMM("32", type, VT_16, "%16", "%17", "%18") : VT_F16(0) : VT_TERMS)
#define VT_GEMM_64(type) \
  asm volatile(VT_GEMM("64", type, VT_32, "%32", "%33", "%34") : VT_F16(0), VT_F16(16) : VT_TERMS)
#define VT_GEMM_96(type) \
  asm volatile(VT_GEMM("96", type, VT_48, "%48", "%49", "%50") : VT_F16(0), VT_F16(16), VT_F16(32) : VT_TERMS)
#define VT_GEMM_128(type)                                       \
  asm volatile(VT_GEMM("128", type, VT_64, "%64", "%65", "%66") \
               : VT_F16(0), VT_F16(16), VT_F16(32), VT_F16(48)  \
               : VT_TERMS)
// d[64, columns] = a[64, 16] . b[columns, 16]^T, or d += where `adds`; a thread has half as many sums as
// there are columns.
template <typename T, int kSums>
__device__ __forceinline__ void group_columns_gemm(float (&d)[kSums], uint64_t a, uint64_t b, int adds) {
  constexpr bool kHalf = std::is_same_v<T, __half>;
  constexpr int kColumns = 2 * kSums;
  static_assert(kColumns % 32 == 0 && kColumns <= 128);
  if constexpr (kColumns == 32 && kHalf) VT_GEMM_32("f16");
  if constexpr (kColumns == 32 && !kHalf) VT_GEMM_32("bf16");
  if constexpr (kColumns == 64 && kHalf) VT_GEMM_64("f16");
  if constexpr (kColumns == 64 && !kHalf) VT_GEMM_64("bf16");
  if constexpr (kColumns == 96 && kHalf) VT_GEMM_96("f16");
  if constexpr (kColumns == 96 && !kHalf) VT_GEMM_96("bf16");
  if constexpr (kColumns == 128 && kHalf) VT_GEMM_128("f16");
  if constexpr (kColumns == 128 && !kHalf) VT_GEMM_128("bf16");
}

#undef VT_GEMM_128
#undef VT_GEMM_96
#undef VT_GEMM_64
#undef VT_GEMM_32
#undef VT_TERMS
#undef VT_GEMM
#undef VT_64
#undef VT_48
#undef VT_32
#undef VT_16
#undef VT_F16
#undef VT_F4

// The compiler moves nothing that reads the sums before this call.
template <int kSums>
__device__ __forceinline__ void settle_sums(float (&d)[kSums]) {
#pragma unroll
  for (float& x : d) asm volatile("" : "+f"(x)::"memory");
}

// Synchronises all threads of the cluster; what they wrote to shared memory is then visible to all.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}
// Reads four floats of the shared memory of a block of the cluster; `address` is their place in that of this
// block.
__device__ __forceinline__ float4 read_of_block(uint32_t address, int block) {
  float4 v;
  asm volatile(
      "{\n .reg .b32 there;\n mapa.shared::cluster.u32 there, %4, %5;\n"
      " ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "r"(address), "r"(block));
  return v;
}

}  // namespace vitrail::cuda

#endif
