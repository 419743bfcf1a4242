#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace vitrail {
namespace {

TEST(DType, NamesParseBack) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                      DType::kI16, DType::kI8, DType::kU8, DType::kBool})
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  EXPECT_FALSE(parse_dtype("float32"));
  EXPECT_FALSE(parse_dtype(""));
}

TEST(Half, EveryPatternSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      ASSERT_EQ(f32_to_f16(value), bits);
    }
  }
}

TEST(Half, ValuesBetweenTwoRoundToTheNearestOrTheEvenOne) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = f16_to_f32(static_cast<uint16_t>(bits)),
                high = f16_to_f32(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact in f32
    ASSERT_EQ(f32_to_f16(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, INFINITY)), bits + 1);
    ASSERT_EQ(f32_to_f16(-middle), 0x8000u | (bits % 2 == 0 ? bits : bits + 1));
  }
}

TEST(Half, LargeValuesBecomeInfinity) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65519.99f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(INFINITY), 0x7c00);
}

TEST(Bfloat, EveryPatternSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
    } else {
      ASSERT_EQ(f32_to_bf16(value), bits);
    }
  }
}

TEST(Bfloat, RoundsToNearestEven) {
  const auto from_bits = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  EXPECT_EQ(f32_to_bf16(from_bits(0x3f808000)), 0x3f80);  // tie, even stays
  EXPECT_EQ(f32_to_bf16(from_bits(0x3f818000)), 0x3f82);  // tie, odd goes up
  EXPECT_EQ(f32_to_bf16(from_bits(0x3f808001)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(from_bits(0x3f807fff)), 0x3f80);
}

TEST(ConvertFloats, GoesBetweenAnyTwoFloatTypes) {
  const std::vector<double> values = {0.0, -1.5, 0.333251953125, 1024.0, -0.0};  // exact in half precision
  const DType types[] = {DType::kF64, DType::kF32, DType::kF16};
  for (DType a : types)
    for (DType b : types) {
      std::vector<std::byte> first(values.size() * 8), second(values.size() * 8);
      std::vector<double> back(values.size());
      convert_floats(values.data(), DType::kF64, first.data(), a, values.size());
      convert_floats(first.data(), a, second.data(), b, values.size());
      convert_floats(second.data(), b, back.data(), DType::kF64, values.size());
      EXPECT_EQ(back, values) << to_string(a) << " to " << to_string(b);
    }
}

TEST(ConvertFloats, RefusesIntegers) {
  int32_t integer = 1;
  float real = 0;
  EXPECT_THROW(convert_floats(&integer, DType::kI32, &real, DType::kF32, 1), Error);
  EXPECT_THROW(convert_floats(&real, DType::kF32, &integer, DType::kI32, 1), Error);
}

// The part of an empty shard has no address; a build with UBSan sees what it is given to.
TEST(DType, NothingIsConvertedFromNowhere) {
  for (DType to : {DType::kF32, DType::kBF16}) convert_floats(nullptr, DType::kF32, nullptr, to, 0);
}

// Converting many at a time uses other instructions than one at a time.
TEST(DType, WideningManyEqualsWideningEach) {
  for (const DType half : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> bits(65536 + 5);  // no multiple of any vector
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(bits.size());
    convert_floats(bits.data(), half, wide.data(), DType::kF32, bits.size());
    for (size_t i = 0; i < bits.size(); ++i) {
      const float expected = half == DType::kF16 ? f16_to_f32(bits[i]) : bf16_to_f32(bits[i]);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(wide[i])) << i;
      else
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected)) << i;
    }
  }
}

}  // namespace
}  // namespace vitrail
