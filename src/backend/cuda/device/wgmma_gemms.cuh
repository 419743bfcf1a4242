// GEMMs of a warp group (see wgmma.cuh) with 16 to 128 columns, and what a kernel whose warp groups have
// roles needs besides hopper.cuh: rings of tiles, and loads of the rows of a head. Rows of more than 64
// elements stand in shared memory as panels of 64 columns, one after another. Knows no op.
#pragma once

#include "backend/cuda/device/hopper.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace vitrail::cuda {

#define VT_TEN(tens)                                                                                   \
  "%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens \
  "7, %" #tens "8, %" #tens "9, "
#define VT_30 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " VT_TEN(1) VT_TEN(2)
#define VT_F4(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define VT_F16(i) VT_F4(i), VT_F4(i + 1), VT_F4(i + 2), VT_F4(i + 3)
#define VT_HEAD(columns, type, add)                                                                \
  "{\n .reg .pred add;\n setp.ne.b32 add, " add ", 0;\n wgmma.mma_async.sync.aligned.m64n" columns \
  "k16.f32." type "." type " {"
#define VT_A "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows), "n"(kAdd), "n"(kTurned)

#define VT_WGMMA_16(type) \
  asm volatile(VT_HEAD("16", type, "%13") "%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, " \
                                          "add, 1, 1, %14;\n}"                                       \
               : VT_F4(0), VT_F4(1)                                                                  \
               : VT_A)
#define VT_WGMMA_64(type)                                                                                  \
  asm volatile(VT_HEAD("64", type, "%37") VT_30 "%30, %31}, {%32, %33, %34, %35}, %36, add, 1, 1, %38;\n}" \
               : VT_F16(0), VT_F16(4)                                                                      \
               : VT_A)
#define VT_WGMMA_80(type)                                                  \
  asm volatile(VT_HEAD("80", type, "%45") VT_30                            \
               "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39}, {%40, " \
               "%41, %42, %43}, %44, add, 1, 1, %46;\n}"                   \
               : VT_F16(0), VT_F16(4), VT_F4(8), VT_F4(9)                  \
               : VT_A)
#define VT_WGMMA_96(type) \
  asm volatile(VT_HEAD("96", type, "%53") VT_30 VT_TEN(3) "%40, %41, %42, %43, %44, %45, %46, %47}, {%48, " \
                                          "%49, %50, %51}, %52, add, 1, 1, %54;\n}"                      \
               : VT_F16(0), VT_F16(4), VT_F16(8)                                                         \
               : VT_A)
#define VT_WGMMA_128(type) \
  asm volatile(VT_HEAD("128", type, "%69") VT_30 VT_TEN(3) VT_TEN(4) VT_TEN(5) "%60, %61, %62, %63}, {%64, " \
                                           "%65, %66, %67}, %68, add, 1, 1, %70;\n}"                     \
               : VT_F16(0), VT_F16(4), VT_F16(8), VT_F16(12)                                             \
               : VT_A)

// d = a b for 16 terms, or d += the same; d has kEights x 8 columns. The rows of shared memory are b's
// columns, or with kTurned its terms, of that many columns.
template <typename T, bool kTurned, bool kAdd, int kEights>
__device__ __forceinline__ void group_mma(float (&d)[kEights][4], const uint32_t (&a)[4], uint64_t rows) {
  constexpr bool kHalf = std::is_same_v<T, __half>;
  static_assert(kEights == 2 || kEights == 8 || kEights == 10 || kEights == 12 || kEights == 16);
  if constexpr (kEights == 2 && kHalf) VT_WGMMA_16("f16");
  if constexpr (kEights == 2 && !kHalf) VT_WGMMA_16("bf16");
  if constexpr (kEights == 8 && kHalf) VT_WGMMA_64("f16");
  if constexpr (kEights == 8 && !kHalf) VT_WGMMA_64("bf16");
  if constexpr (kEights == 10 && kHalf) VT_WGMMA_80("f16");
  if constexpr (kEights == 10 && !kHalf) VT_WGMMA_80("bf16");
  if constexpr (kEights == 12 && kHalf) VT_WGMMA_96("f16");
  if constexpr (kEights == 12 && !kHalf) VT_WGMMA_96("bf16");
  if constexpr (kEights == 16 && kHalf) VT_WGMMA_128("f16");
  if constexpr (kEights == 16 && !kHalf) VT_WGMMA_128("bf16");
}

#define VT_SHARED_16(type)                                                                               \
  asm volatile(VT_HEAD("16", type, "%10") "%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, add, 1, 1, 0, 0;\n}" \
               : VT_F4(0), VT_F4(1)                                                                      \
               : "l"(a), "l"(rows), "n"(kAdd))
#define VT_SHARED_64(type)                                                                 \
  asm volatile(VT_HEAD("64", type, "%34") VT_30 "%30, %31}, %32, %33, add, 1, 1, 0, 0;\n}" \
               : VT_F16(0), VT_F16(4)                                                      \
               : "l"(a), "l"(rows), "n"(kAdd))

// d = a rows^T for 16 terms, or d += the same, with both in shared memory.
template <typename T, bool kAdd, int kEights>
__device__ __forceinline__ void group_mma(float (&d)[kEights][4], uint64_t a, uint64_t rows) {
  constexpr bool kHalf = std::is_same_v<T, __half>;
  static_assert(kEights == 2 || kEights == 8);
  if constexpr (kEights == 2 && kHalf) VT_SHARED_16("f16");
  if constexpr (kEights == 2 && !kHalf) VT_SHARED_16("bf16");
  if constexpr (kEights == 8 && kHalf) VT_SHARED_64("f16");
  if constexpr (kEights == 8 && !kHalf) VT_SHARED_64("bf16");
}

#undef VT_SHARED_64
#undef VT_SHARED_16
#undef VT_WGMMA_128
#undef VT_WGMMA_96
#undef VT_WGMMA_80
#undef VT_WGMMA_64
#undef VT_WGMMA_16
#undef VT_A
#undef VT_HEAD
#undef VT_F16
#undef VT_F4
#undef VT_30
#undef VT_TEN

// The compiler moves nothing that reads or writes these registers across this call.
template <typename Word, int kRows>
__device__ __forceinline__ void settle(Word (&d)[kRows][4]) {
#pragma unroll
  for (auto& row : d)
#pragma unroll
    for (Word& x : row) {
      if constexpr (std::is_same_v<Word, float>)
        asm volatile("" : "+f"(x)::"memory");
      else
        asm volatile("" : "+r"(x)::"memory");
    }
}

// The distance to a step of 16 terms in the descriptor of rows, whose panels lie `panel` bytes apart.
__device__ __forceinline__ constexpr uint64_t terms_at(int step, uint32_t panel) {
  return step / 4 * uint64_t{panel / 16} + step % 4 * kNextTerms;
}
// Starts d = own rows^T, own being a warp's 16 rows.
template <typename T, int kEights, int kSteps>
__device__ __forceinline__ void start_dots(float (&d)[kEights][4], const uint32_t (&own)[kSteps][4],
                                           uint32_t rows, uint32_t panel) {
  const uint64_t b = group_rows(rows);
  group_mma<T, false, false>(d, own[0], b);
#pragma unroll
  for (int step = 1; step < kSteps; ++step)
    group_mma<T, false, true>(d, own[step], b + terms_at(step, panel));
}
// The same with the group's 64 own rows in shared memory.
template <typename T, int kSteps, int kEights>
__device__ __forceinline__ void start_shared_dots(float (&d)[kEights][4], uint32_t own, uint32_t own_panel,
                                                  uint32_t rows, uint32_t panel) {
  const uint64_t a = group_rows(own), b = group_rows(rows);
  group_mma<T, false>(d, a, b);
#pragma unroll
  for (int step = 1; step < kSteps; ++step)
    group_mma<T, true>(d, a + terms_at(step, own_panel), b + terms_at(step, panel));
}
// Starts d += weights rows, 16 rows for each of the weights' operands: all of them, or the first kUsed.
template <typename T, int kUsed = 0, int kEights, int kSteps>
__device__ __forceinline__ void start_weigh(float (&d)[kEights][4], const uint32_t (&weights)[kSteps][4],
                                            uint32_t rows, uint32_t panel) {
  const uint64_t b = kEights > 8 ? group_columns(rows, panel) : group_rows(rows);
#pragma unroll
  for (int step = 0; step < (kUsed > 0 ? kUsed : kSteps); ++step)
    group_mma<T, true, true>(d, weights[step], b + step * kNextRows);
}

// A place in a ring of kSlots tiles, and the parity of the round.
template <int kSlots>
struct RingPlace {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void next() {
    if (++slot == kSlots) slot = 0, parity ^= 1;
  }
};

// Loads a box of 64 columns of a head's rows, from `column` and `row` on.
__device__ __forceinline__ void tma_load_rows(uint32_t to, const CUtensorMap& map, int column, int row,
                                              int head, int image, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(image)
      : "memory");
}
// Loads contiguous bytes, a multiple of 16 from a multiple of 16 on.
__device__ __forceinline__ void tma_load_bytes(uint32_t to, const void* from, uint32_t bytes,
                                               uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

}  // namespace vitrail::cuda

#endif
