// Loads and multiply-adds that stay in the order they are written in, and sums that stay in their registers.
// The compiler on its own loads a value right before its first use and moves sums between registers. Values
// loaded long before they are needed keep multiply-adds from waiting in the scheduler, whose entries a core
// shares with its second hardware thread.
#pragma once

#include "backend/cpu/isa/vec.h"

// These functions are always inlined: a call would spill all registers to memory.
#define VT_ALWAYS __attribute__((always_inline))
#define VT_INLINE inline VT_ALWAYS

namespace vitrail::cpu::VT_ISA {

// Sanitizers do not see the memory that assembly reads, so with them the compiler chooses the order.
#if defined(__AVX2__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__AVX512F__)
#define VT_VECTOR "v"
inline constexpr int kRegisters = 32;
#else
#define VT_VECTOR "x"
inline constexpr int kRegisters = 16;
#endif

// sum += x * b.
VT_INLINE void add_product(Vec& sum, Vec x, Vec b) {
  asm volatile("vfmadd231ps %2, %1, %0" : "+" VT_VECTOR(sum) : VT_VECTOR(x), VT_VECTOR(b));
}

// load_now and spread_now name v as an input too, so that the new value is loaded into the register of the
// old one.
VT_INLINE void load_now(Vec& v, const float* p) {
  asm volatile("vmovups %1, %0" : "+" VT_VECTOR(v) : "m"(*reinterpret_cast<const UnalignedVec*>(p)));
}

// The memory that spread_now is declared to read.
struct Reach {
  float values[1 << 24];
};

// v = p[kLines * stride + kAt] in all lanes, kLines < 3, without a register for each line's address.
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
inline void add_product(Vec& sum, Vec x, Vec b) {
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
