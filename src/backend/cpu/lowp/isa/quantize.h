// Rounding f32 to signed 8-bit integers with one scale for many values: value = integer * scale. The int8
// GEMMs of every instruction set share it, since all must round alike.
#pragma once

#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {

struct Int8Scale {
  float scale, inverse;  // both 0 where all values are too small for a scale; NaN where one is not finite
};

// The scale is the largest magnitude / 127.
inline Int8Scale int8_scale(const float* x, int64_t count) {
  constexpr float kSmallest = 0x1p-116f;  // below it 127 / x comes near the largest float
  IntVec top{};  // the bits of magnitudes order as the magnitudes do, infinity and NaN last
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto bits = reinterpret_cast<IntVec>(abs(load_up_to(x + i, count - i)));
    top = bits > top ? bits : top;
  }
  int32_t largest = top[0];
  for (int i = 1; i < kLanes; ++i) largest = top[i] > largest ? top[i] : largest;
  if (largest >= 0x7f800000) return {__builtin_nanf(""), 0.0f};
  const float magnitude = __builtin_bit_cast(float, largest);
  if (magnitude < kSmallest) return {0.0f, 0.0f};
  return {magnitude / 127.0f, 127.0f / magnitude};
}

// x * inverse rounded to the nearest integer, ties to even; 0 where inverse is 0, whatever x is.
inline IntVec quantize(Vec x, Vec inverse) {
  const Vec shifted = x * inverse + set1(0x1.8p23f);  // its last bits are the integer
  return inverse == Vec{} ? IntVec{} : reinterpret_cast<IntVec>(shifted) - 0x4b400000;
}

}  // namespace vitrail::cpu::VT_ISA
