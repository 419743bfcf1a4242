// Rounding of f32 to what the dot-product kernels multiply, for rows of A and weights alike: the nearest
// bf16, three bf16 that make up an f32, or 8-bit integers. The compiler vectorises these loops.
#pragma once

#include <bit>
#include <cstring>

#include "backend/cpu/lowp/isa/quantize.h"

namespace vitrail::cpu::VT_ISA {

// Rounds x * inverse to nearest even as bytes, with the bits of `flip` inverted: the lowest byte of the sum
// with 1.5 * 2^23 is the integer. It rounds as quantize does.
inline void quantize_bytes(const float* x, int64_t count, float inverse, uint8_t flip, std::byte* q) {
  if (inverse == 0) {
    std::memset(q, flip, static_cast<size_t>(count));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    q[i] = static_cast<std::byte>(std::bit_cast<uint32_t>(x[i] * inverse + 0x1.8p23f) ^ flip);
}

// The nearest bf16 to a float, ties to even, as a float whose lower half is zero.
inline float to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return std::bit_cast<float>((is_nan ? bits | 0x400000u : rounded) & 0xffff0000u);
}

inline uint16_t upper_half(float x) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
}

// A bf16 within half a step of x, as a float whose lower half is zero. Numbers too large become infinite, and
// NaN may become anything: see split.
inline float near_bf16(float x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x8000u) & 0xffff0000u);
}

inline void round_values(const float* x, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = upper_half(to_bf16(x[i]));
}

// x = high + middle + low, each a bf16 near the remainder, with the parts `apart` values from each other.
// Numbers too large for a bf16 become NaN, and NaN stays NaN: one of the three parts always is.
inline void split(const float* x, int64_t count, int64_t apart, uint16_t* parts) {
  for (int64_t i = 0; i < count; ++i) {
    const float high = near_bf16(x[i]), rest = x[i] - high, middle = near_bf16(rest);
    parts[i] = upper_half(high);
    parts[apart + i] = upper_half(middle);
    parts[2 * apart + i] = upper_half(rest - middle);
  }
}

}  // namespace vitrail::cpu::VT_ISA
