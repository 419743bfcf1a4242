// Tensor-core GEMMs of one warp, with 16-bit operands and f32 sums, and how their operands are loaded from
// shared memory. Knows no op. Everything here runs from compute capability 8.0 on.
//
// Fragments (g = lane / 4, t = lane % 4): a 16x8 accumulator holds {row g: columns 2t, 2t+1; row g+8: the
// same}; an A operand of 16 rows x 16 terms {row g: terms 2t, 2t+1; row g+8: the same; row g: terms 2t+8,
// 2t+9; row g+8: the same}. So two adjacent accumulators, packed, are an A operand.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace vitrail::cuda {

// d = a b + c, for 16 rows, 8 columns, 16 terms.
template <typename T>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float c0,
                                    float c1, float c2, float c3) {
#define VT_MMA(type)                                                                                      \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                                     \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                           \
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c0), "f"(c1), "f"(c2), \
                 "f"(c3))
  if constexpr (std::is_same_v<T, __half>)
    VT_MMA("f16");
  else
    VT_MMA("bf16");
#undef VT_MMA
}
// sum += a b.
template <typename T>
__device__ __forceinline__ void mma(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  mma<T>(sum, a, b0, b1, sum[0], sum[1], sum[2], sum[3]);
}
// product = a b.
template <typename T>
__device__ __forceinline__ void mma_first(float (&product)[4], const uint32_t (&a)[4], uint32_t b0,
                                          uint32_t b1) {
  mma<T>(product, a, b0, b1, 0, 0, 0, 0);
}

// The elements that pack2 packs.
template <typename T>
__device__ __forceinline__ float2 unpack2(uint32_t pair) {
  if constexpr (std::is_same_v<T, __half>)
    return __half22float2(reinterpret_cast<const __half2&>(pair));
  else
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
// Packs two neighbouring elements of an operand; `first` has the lower address.
template <typename T>
__device__ __forceinline__ uint32_t pack2(float first, float second) {
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 pair = __floats2half2_rn(first, second);
    return reinterpret_cast<const uint32_t&>(pair);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return reinterpret_cast<const uint32_t&>(pair);
  }
}

// Returns the same value in a way the compiler cannot see through, so that what is computed from it is not
// kept in registers across a loop.
__device__ __forceinline__ int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Rows of kSize 16-bit elements in shared memory whose 16-byte pieces are permuted within the row, so that
// the pieces of one column in eight rows lie in different banks. kSize is a multiple of 16. Offsets are in
// bytes from a start on 128 bytes. Rows 8 apart are permuted alike: offset(row + 8 n, piece) = offset(row,
// piece) + 8 n kRowBytes.
template <int kSize>
struct Swizzle {
  static constexpr int kPieces = kSize / 8;
  static constexpr int kRowBytes = kSize * 2;
  static constexpr int kGroup = kPieces % 8 == 0 ? 8 : kPieces % 4 == 0 ? 4 : 2;

  static __device__ __forceinline__ uint32_t offset(int row, int piece) {
    return static_cast<uint32_t>(row * kRowBytes + (piece ^ (row / (8 / kGroup) % kGroup)) * 16);
  }
  // This lane's address offset for load16x16, in rows 0..15 and elements 16 step .. 16 step + 15.
  static __device__ __forceinline__ uint32_t lane_offset(int lane, int step) {
    return offset(lane & 15, 2 * step + (lane >> 4));
  }
  // The same offset for a block stored [column][term]: its two middle quarters are swapped.
  static __device__ __forceinline__ uint32_t column_offset(int lane, int step) {
    return offset((lane & 7) + (lane >> 4) * 8, 2 * step + (lane >> 3 & 1));
  }
};

// Loads a 16x16 block of shared memory (ldmatrix). Stored [row][term], by lane_offset: an A operand r[0..3].
// Stored [column][term], by column_offset: the B operands of columns 0..7 (r[0], r[1]) and 8..15 (r[2],
// r[3]); by lane_offset they are (r[0], r[2]) and (r[1], r[3]), which costs moves, as a B operand is a
// register pair.
__device__ __forceinline__ void load16x16(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
// Loads the block transposed, by lane_offset: stored [term][column], the B operands of columns 0..7 (r[0],
// r[1]) and 8..15 (r[2], r[3]); stored [term][row], the A operand {r[0], r[2], r[1], r[3]}.
__device__ __forceinline__ void load16x16_turned(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// Copies 16 bytes from global to shared memory asynchronously, or zeros when not `wanted` (the source is then
// not read). Both addresses are multiples of 16 bytes.
__device__ __forceinline__ void copy16(uint32_t target, const void* source, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(wanted ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until all but the kLeft latest commits of this thread have arrived; those of other threads need a
// barrier besides.
template <int kLeft>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// 2^x in one instruction, with a relative error of about 2^-22; -inf gives 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
inline constexpr float kLog2e = 1.4426950408889634f;

// The maximum, and the sum, over the four lanes that share a fragment's rows.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

}  // namespace vitrail::cuda
