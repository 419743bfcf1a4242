// The vector dot-product layer: sixteen sums, and the dot products of 4-byte words added to them, two bf16 or
// four 8-bit integers per lane. Where the compiler does not target VNNI and BF16 they are emulated in plain
// C++, so that kernels written on this layer can be tested on any machine; the program itself never runs the
// emulation.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__AVX512VNNI__) && defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace vitrail::cpu::VT_ISA {

inline constexpr int kDotLanes = 16;

#if defined(__AVX512VNNI__) && defined(__AVX512BF16__)
typedef __m512i Words;
typedef __m512 FloatSums;
typedef __m512i IntSums;

inline Words load_words(const void* from) {
  return _mm512_loadu_si512(from);
}
inline Words repeat_word(const void* from) {
  int32_t word;
  std::memcpy(&word, from, sizeof word);
  return _mm512_set1_epi32(word);
}
inline void load_sums(const float* from, FloatSums& sums) {
  sums = _mm512_loadu_ps(from);
}
inline void load_sums(const float* from, IntSums& sums) {
  sums = _mm512_loadu_si512(from);
}
inline void store_sums(float* to, FloatSums sums) {
  _mm512_storeu_ps(to, sums);
}
inline void store_sums(float* to, IntSums sums) {
  _mm512_storeu_si512(to, sums);
}
inline FloatSums dot_bf16(FloatSums sums, Words a, Words b) {
  return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
}
// a is unsigned, b signed; no sum saturates.
inline IntSums dot_u8s8(IntSums sums, Words a, Words b) {
  return _mm512_dpbusd_epi32(sums, a, b);
}
#else
struct Words {
  uint32_t lane[kDotLanes];
};
struct FloatSums {
  float lane[kDotLanes];
};
struct IntSums {
  int32_t lane[kDotLanes];
};

inline Words load_words(const void* from) {
  Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
}
inline Words repeat_word(const void* from) {
  Words words;
  for (uint32_t& lane : words.lane) std::memcpy(&lane, from, sizeof lane);
  return words;
}
template <typename Sums>
inline void load_sums(const float* from, Sums& sums) {
  std::memcpy(&sums, from, sizeof sums);
}
template <typename Sums>
inline void store_sums(float* to, const Sums& sums) {
  std::memcpy(to, &sums, sizeof sums);
}
inline float upper_half(uint32_t word) {
  word &= 0xffff0000u;
  float v;
  std::memcpy(&v, &word, sizeof v);
  return v;
}
inline FloatSums dot_bf16(FloatSums sums, const Words& a, const Words& b) {
  for (int i = 0; i < kDotLanes; ++i) {
    const float odd = __builtin_fmaf(upper_half(a.lane[i]), upper_half(b.lane[i]), sums.lane[i]);
    sums.lane[i] = __builtin_fmaf(upper_half(a.lane[i] << 16), upper_half(b.lane[i] << 16), odd);
  }
  return sums;
}
inline IntSums dot_u8s8(IntSums sums, const Words& a, const Words& b) {
  for (int i = 0; i < kDotLanes; ++i)
    for (int byte = 0; byte < 4; ++byte)
      sums.lane[i] +=
          static_cast<uint8_t>(a.lane[i] >> 8 * byte) * static_cast<int8_t>(b.lane[i] >> 8 * byte);
  return sums;
}
#endif

}  // namespace vitrail::cpu::VT_ISA
