// What the numbers of a tensor look like, of every element type.
#include "io/tensor_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace vitrail {
namespace {

template <typename T>
TensorStats scan(const std::vector<T>& values, DType dtype) {
  StatsScan whole(dtype);
  whole.add(std::as_bytes(std::span(values)));
  return whole.result();
}

TEST(TensorStats, CountsWhatIsNotFinite) {
  const TensorStats stats = scan<float>({1, -3, NAN, INFINITY, 5, -INFINITY}, DType::kF32);
  EXPECT_EQ(stats.finite, 3);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.inf, 2);
  EXPECT_DOUBLE_EQ(stats.min, -3);
  EXPECT_DOUBLE_EQ(stats.max, 5);
  EXPECT_DOUBLE_EQ(stats.mean, 1);
  const TensorStats falling = scan<float>({7, 2, -4}, DType::kF32);
  EXPECT_DOUBLE_EQ(falling.max, 7);
  EXPECT_DOUBLE_EQ(falling.min, -4);
}

TEST(TensorStats, EveryElementTypeAndLongTensors) {
  EXPECT_DOUBLE_EQ(scan<int64_t>({-7, 9}, DType::kI64).mean, 1);
  EXPECT_DOUBLE_EQ(scan<int32_t>({-7, 9}, DType::kI32).min, -7);
  EXPECT_DOUBLE_EQ(scan<int16_t>({-7, 9}, DType::kI16).max, 9);
  EXPECT_DOUBLE_EQ(scan<int8_t>({-128}, DType::kI8).min, -128);
  EXPECT_DOUBLE_EQ(scan<uint8_t>({255}, DType::kU8).max, 255);
  EXPECT_DOUBLE_EQ(scan<uint8_t>({0, 1}, DType::kBool).mean, 0.5);
  EXPECT_DOUBLE_EQ(scan<uint16_t>({0x3C00, 0xC000}, DType::kF16).min, -2);
  EXPECT_DOUBLE_EQ(scan<uint16_t>({0x3F80}, DType::kBF16).max, 1);
  std::vector<double> many(10001, 1.0);
  many.back() = 10002;
  EXPECT_DOUBLE_EQ(scan(many, DType::kF64).mean, 2);
  EXPECT_EQ(scan<float>({}, DType::kF32).finite, 0);
}

}  // namespace
}  // namespace vitrail
