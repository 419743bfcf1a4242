// The vector layer: vectors of as many floats as a register of the instruction set (VT_ISA) holds, with the
// few operations that kernels need. Arithmetic is the compiler's own on vector types; only what it cannot
// express is written per instruction set. The kernels of isa/ folders, compiled once per instruction set, are
// built on it. Nothing here or in a kernel may come from a template or inline function of another namespace:
// the linker would keep one copy of it, perhaps one compiled for instructions that this processor lacks.
#pragma once

#include <cstdint>
#include <utility>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "backend/cpu/isa/shape.h"

namespace vitrail::cpu::VT_ISA {

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef int32_t IntVec __attribute__((vector_size(kLanes * 4)));
typedef uint32_t BitVec __attribute__((vector_size(kLanes * 4)));
typedef float UnalignedVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Vec load(const float* p) {
  return *reinterpret_cast<const UnalignedVec*>(p);
}
inline void store(float* p, Vec v) {
  *reinterpret_cast<UnalignedVec*>(p) = v;
}
inline Vec set1(float x) {
  return x - Vec{};
}

// A vector of pairs of 16-bit integers, one pair per lane, and the sums of their products.
typedef int32_t UnalignedIntVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
inline IntVec load_ints(const int32_t* p) {
  return *reinterpret_cast<const UnalignedIntVec*>(p);
}
inline void store_ints(int32_t* p, IntVec v) {
  *reinterpret_cast<UnalignedIntVec*>(p) = v;
}
#if defined(__AVX512BW__)
inline IntVec multiply_pairs(IntVec a, IntVec b) {
  return reinterpret_cast<IntVec>(
      _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
#elif defined(__AVX2__)
inline IntVec multiply_pairs(IntVec a, IntVec b) {
  return reinterpret_cast<IntVec>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
#elif defined(__SSE2__)
inline IntVec multiply_pairs(IntVec a, IntVec b) {
  return reinterpret_cast<IntVec>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}
#else
inline IntVec multiply_pairs(IntVec a, IntVec b) {
  return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
}
#endif

// max and min return b where one of the two operands is NaN.
#if defined(__AVX512F__)
inline Vec fmadd(Vec a, Vec b, Vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
// The plain intrinsics have an undefined source operand, of which GCC warns.
inline Vec max(Vec a, Vec b) {
  return _mm512_mask_max_ps(a, 0xffff, a, b);
}
inline Vec min(Vec a, Vec b) {
  return _mm512_mask_min_ps(a, 0xffff, a, b);
}
inline Vec sqrt(Vec a) {
  return _mm512_mask_sqrt_ps(a, 0xffff, a);
}
inline Vec load_some(const float* p, int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
}
inline void store_some(float* p, Vec v, int64_t count) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), v);
}
#elif defined(__AVX2__)
inline Vec fmadd(Vec a, Vec b, Vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Vec max(Vec a, Vec b) {
  return _mm256_max_ps(a, b);
}
inline Vec min(Vec a, Vec b) {
  return _mm256_min_ps(a, b);
}
inline Vec sqrt(Vec a) {
  return _mm256_sqrt_ps(a);
}
inline __m256i first_lanes(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vec load_some(const float* p, int64_t count) {
  return _mm256_maskload_ps(p, first_lanes(count));
}
inline void store_some(float* p, Vec v, int64_t count) {
  _mm256_maskstore_ps(p, first_lanes(count), v);
}
#else
inline Vec fmadd(Vec a, Vec b, Vec c) {
  return a * b + c;
}
inline Vec max(Vec a, Vec b) {
  return a > b ? a : b;
}
inline Vec min(Vec a, Vec b) {
  return a < b ? a : b;
}
inline Vec sqrt(Vec a) {
  for (int i = 0; i < kLanes; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
inline Vec load_some(const float* p, int64_t count) {
  Vec v{};
  for (int64_t i = 0; i < count; ++i) v[i] = p[i];
  return v;
}
inline void store_some(float* p, Vec v, int64_t count) {
  for (int64_t i = 0; i < count; ++i) p[i] = v[i];
}
#endif

// Lanes [0, count) of a vector, count in [0, kLanes]; loads fill the other lanes with 0.
inline Vec load_up_to(const float* p, int64_t count) {
  return count >= kLanes ? load(p) : load_some(p, count);
}
inline void store_up_to(float* p, Vec v, int64_t count) {
  if (count >= kLanes)
    store(p, v);
  else
    store_some(p, v, count);
}

// Lanes [0, count) of v; the other lanes become `fill`.
inline Vec keep_first(Vec v, int64_t count, float fill) {
  IntVec lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return lane < static_cast<int32_t>(count) ? v : set1(fill);
}

// Swaps lanes i and i + kHalf of every group of 2 kHalf lanes.
template <int kHalf, int... I>
inline Vec swap_halves(Vec v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ kHalf)...);
}
// Reduces all lanes by f, by halves: f(f(v0, v2), f(v1, v3)) for four lanes.
template <int kHalf = kLanes / 2, typename F>
inline float fold_lanes(Vec v, const F& f) {
  if constexpr (kHalf == 0) {
    return v[0];
  } else {
    return fold_lanes<kHalf / 2>(f(v, swap_halves<kHalf>(v, std::make_integer_sequence<int, kLanes>())), f);
  }
}
inline float sum_lanes(Vec v) {
  return fold_lanes(v, [](Vec a, Vec b) { return a + b; });
}
inline float max_lanes(Vec v) {
  return fold_lanes(v, [](Vec a, Vec b) { return max(a, b); });
}

inline Vec abs(Vec v) {
  return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(v) & 0x7fffffff);
}

}  // namespace vitrail::cpu::VT_ISA
