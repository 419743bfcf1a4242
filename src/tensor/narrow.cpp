#include "tensor/narrow.h"

#include <bit>
#include <cmath>

namespace vitrail {

uint8_t f32_to_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80u);
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude >= std::bit_cast<uint32_t>(kLargestE4M3)) return static_cast<uint8_t>(sign | 0x7eu);
  if (magnitude <
      0x3c800000u) {  // below 2^-6: subnormals, steps of 2^-9, which is where 2^14 has its last bit
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0x1p14f)));
  }
  const uint32_t odd = magnitude >> 20 & 1u;
  return static_cast<uint8_t>(sign | ((magnitude - 0x3c000000u + 0x7ffffu + odd) >> 20));
}

float e4m3_to_f32(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                  : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  if ((code & 0x7f) == 0x7f) magnitude = NAN;
  return code & 0x80 ? -magnitude : magnitude;
}

float round_to_tf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return std::bit_cast<float>((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

}  // namespace vitrail
