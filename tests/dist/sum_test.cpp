// The sum over ranks against the conversions of single elements, for every 16-bit pattern.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "dist/transport.h"

namespace vitrail {

namespace {

// A sum of one input is that input rounded to its own type: nothing changes but the payload of a NaN.
TEST(SumRanges, OfOneIsTheSame) {
  std::vector<uint16_t> all(65536), out(all.size());
  std::iota(all.begin(), all.end(), uint16_t{0});
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const void* in = all.data();
    void* to = out.data();
    sum_ranges(dtype, {&in, 1}, {&to, 1}, all.size());
    for (uint16_t bits : all) {
      const float wide = dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
      ASSERT_EQ(out[bits], dtype == DType::kF16 ? f32_to_f16(wide) : f32_to_bf16(wide)) << bits;
    }
  }
}

// Pairs of patterns, by a step that meets all kinds: subnormal, rounding up to infinity, opposite signs.
TEST(SumRanges, OfTwoIsTheRoundedSum) {
  std::vector<uint16_t> first(65536), second(first.size()), out(first.size());
  std::iota(first.begin(), first.end(), uint16_t{0});
  for (size_t step : {1, 3, 1021, 32749, 32768, 40961}) {
    for (size_t i = 0; i < second.size(); ++i) second[i] = static_cast<uint16_t>(i * step + step);
    for (DType dtype : {DType::kF16, DType::kBF16}) {
      const void* ins[] = {first.data(), second.data()};
      void* to = out.data();
      sum_ranges(dtype, ins, {&to, 1}, first.size());
      for (size_t i = 0; i < first.size(); ++i) {
        const bool half = dtype == DType::kF16;
        const float sum = half ? f16_to_f32(first[i]) + f16_to_f32(second[i])
                               : bf16_to_f32(first[i]) + bf16_to_f32(second[i]);
        const float found = half ? f16_to_f32(out[i]) : bf16_to_f32(out[i]);
        if (std::isnan(sum))
          ASSERT_TRUE(std::isnan(found)) << i;
        else
          ASSERT_EQ(out[i], half ? f32_to_f16(sum) : f32_to_bf16(sum)) << i << " and " << second[i];
      }
    }
  }
}

}  // namespace

}  // namespace vitrail
