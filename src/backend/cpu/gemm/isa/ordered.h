// Loads and multiply-adds that stay in the order they are written in, and sums that stay in their registers.
// Left to itself the compiler loads a value right before its first use and moves sums about. Values that are
// loaded long before they are needed keep the multiply-adds from waiting in the scheduler, whose places a
// core shares with whatever runs on its second thread. Used by the micro-kernel.
#pragma once

#include "backend/cpu/isa/vec.h"

// Inlined whatever it costs: a call would put all registers into memory.
#define VT_ALWAYS __attribute__((always_inline))
#define VT_INLINE inline VT_ALWAYS

namespace vitrail::cpu::VT_ISA {

// Sanitizers see no memory that assembly reads: with them the compiler may choose the order.
#if defined(__AVX2__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__AVX512F__)
#define VT_VECTOR "v"
inline constexpr int kRegisters = 32;
#else
#define VT_VECTOR "x"
inline constexpr int kRegisters = 16;
#endif

// sum += x * b.
VT_INLINE void add_gemm(Vec& sum, Vec x, Vec b) {
  asm volatile("vfmadd231ps %2, %1, %0" : "+" VT_VECTOR(sum) : VT_VECTOR(x), VT_VECTOR(b));
}

// Both say that they read v, too, so that the new value takes the register of the old one.
VT_INLINE void load_now(Vec& v, const float* p) {
  asm volatile("vmovups %1, %0" : "+" VT_VECTOR(v) : "m"(*reinterpret_cast<const UnalignedVec*>(p)));
}

// What spread_now may read, as far as the compiler is told.
struct Reach {
  float values[1 << 24];
};

// v = p[kLines * stride + kAt] in all lanes, kLines < 3, without a register for each line.
template <int kLines, int kAt>
VT_INLINE void spread_now(Vec& v, const float* p, int64_t stride) {
  const auto& reads = *reinterpret_cast<const Reach*>(p);
  if constexpr (kLines == 0)
    asm volatile("vbroadcastss %c2(%1), %0" : "+" VT_VECTOR(v) : "r"(p), "i"(kAt * 4), "m"(reads));
  else
    asm volatile("vbroadcastss %c2(%1,%4,%c5), %0"
                 : "+" VT_VECTOR(v)
                 : "r"(p), "i"(kAt * 4), "m"(reads), "r"(stride), "i"(kLines * 4));
}
#undef VT_VECTOR
#else
inline constexpr int kRegisters = 16;
inline void add_gemm(Vec& sum, Vec x, Vec b) {
  sum = fmadd(x, b, sum);
}
inline void load_now(Vec& v, const float* p) {
  v = load(p);
}
template <int kLines, int kAt>
inline void spread_now(Vec& v, const float* p, int64_t stride) {
  v = set1(p[kLines * stride + kAt]);
}
#endif

}  // namespace vitrail::cpu::VT_ISA
