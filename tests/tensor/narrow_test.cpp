#include "tensor/narrow.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace vitrail {
namespace {

// Returns the value of a code by the format's definition.
double value_of(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double magnitude =
      exponent == 0 ? mantissa / 8.0 * std::exp2(-6) : (1 + mantissa / 8.0) * std::exp2(exponent - 7);
  return code & 0x80 ? -magnitude : magnitude;
}

TEST(E4M3, EveryCodeIsReadAndWrittenBack) {
  for (int code = 0; code < 256; ++code) {
    const float value = e4m3_to_f32(static_cast<uint8_t>(code));
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, value_of(code)) << code;
      EXPECT_EQ(std::signbit(value), (code & 0x80) != 0) << code;
    }
    EXPECT_EQ(f32_to_e4m3(value), code);
  }
}

TEST(E4M3, WhatLiesBetweenTwoCodesGoesToTheNearerAndTiesToTheEven) {
  for (int code = 0; code < 0x7e; ++code) {
    const auto middle = static_cast<float>((value_of(code) + value_of(code + 1)) / 2);
    const int even = code % 2 == 0 ? code : code + 1;
    for (int sign : {0, 0x80}) {
      const auto rounded = [&](float value) { return f32_to_e4m3(sign ? -value : value) - sign; };
      EXPECT_EQ(rounded(middle), even) << code;
      EXPECT_EQ(rounded(std::nextafter(middle, 0.0f)), code) << code;
      EXPECT_EQ(rounded(std::nextafter(middle, 1000.0f)), code + 1) << code;
    }
  }
}

TEST(E4M3, WhatIsTooLargeBecomesTheLargest) {
  EXPECT_EQ(value_of(0x7e), kLargestE4M3);
  for (float value : {448.0f, 449.0f, 464.0f, 480.0f, 1e30f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(f32_to_e4m3(value), 0x7e) << value;
    EXPECT_EQ(f32_to_e4m3(-value), 0xfe) << value;
  }
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(TF32, KeepsTenBitsOfMantissa) {
  const float step = 0x1p-10f;
  for (const auto& [value, wanted] : {std::pair{1.0f, 1.0f},
                                      {1 + step, 1 + step},
                                      {1 + step / 2, 1.0f},              // a tie, to the even
                                      {1 + 3 * step / 2, 1 + 2 * step},  // and up to it
                                      {1 + 0.51f * step, 1 + step},
                                      {2 - 0x1p-23f, 2.0f},
                                      {0.0f, 0.0f}}) {
    EXPECT_EQ(round_to_tf32(value), wanted) << value;
    EXPECT_EQ(round_to_tf32(-value), -wanted) << value;
  }
  EXPECT_EQ(round_to_tf32(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(round_to_tf32(std::bit_cast<float>(0x7fffffffu))));
}

}  // namespace
}  // namespace vitrail
