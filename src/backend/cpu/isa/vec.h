// The vector layer: as many floats as the instruction set (VT_ISA) holds in a register, with the few
// operations kernels need. Arithmetic is the compiler's own on vector types; only what it cannot express
// is written per instruction set. Used by backend/cpu/isa alone, which is compiled once per level.
// Nothing here or in a kernel may come from a template or inline function of another namespace: the
// linker would keep one copy of it, perhaps the one compiled for a processor this is not.
#pragma once

#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace vitrail::VT_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef int32_t IntVec __attribute__((vector_size(kLanes * 4)));
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

// max and min give b where one of the two is not a number.
#if defined(__AVX512F__)
inline Vec fmadd(Vec a, Vec b, Vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
// The plain intrinsics name an undefined source, which GCC warns of.
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

// Lanes [0, count) of a vector, count in [0, kLanes]; loads fill the rest with 0.
inline Vec load_up_to(const float* p, int64_t count) {
  return count >= kLanes ? load(p) : load_some(p, count);
}
inline void store_up_to(float* p, Vec v, int64_t count) {
  count >= kLanes ? store(p, v) : store_some(p, v, count);
}

// Lanes [0, count) of v, the others `fill`.
inline Vec keep_first(Vec v, int64_t count, float fill) {
  IntVec lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return lane < static_cast<int32_t>(count) ? v : set1(fill);
}

inline float sum_lanes(Vec v) {
  float part[kLanes];
  store(part, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) part[i] += part[i + half];
  return part[0];
}

inline float max_lanes(Vec v) {
  float best = v[0];
  for (int i = 1; i < kLanes; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

inline Vec abs(Vec v) {
  return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(v) & 0x7fffffff);
}

inline constexpr int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
inline constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

}  // namespace vitrail::VT_ISA
