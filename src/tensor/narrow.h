// Roundings that only GEMMs use: e4m3, the 8-bit float of 4 exponent and 3 mantissa bits, and tf32, f32 with
// the mantissa of f16. No tensor is stored in them.
#pragma once

#include <cstdint>

namespace vitrail {

inline constexpr float kLargestE4M3 = 448.0f;

// Rounds to nearest, ties to even, and saturates at the largest magnitude. e4m3 has no infinity; NaN stays
// NaN.
uint8_t f32_to_e4m3(float value);
float e4m3_to_f32(uint8_t code);

// Rounds to nearest, ties to even, with 10 bits of mantissa.
float round_to_tf32(float value);

}  // namespace vitrail
