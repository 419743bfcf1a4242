// The sum over ranks against the conversions of single elements, for every 16-bit pattern.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dist/transport.h"
#include "thrown.h"

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

// Elements that end where memory does: what lies behind them cannot be touched.
class LastElements {
 public:
  explicit LastElements(size_t bytes) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t own = (bytes + page - 1) / page * page;
    mapped_ = own + page;
    base_ = static_cast<char*>(
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_EQ(::mprotect(base_ + own, page, PROT_NONE), 0);
    data_ = base_ + own - bytes;
  }
  ~LastElements() { ::munmap(base_, mapped_); }
  LastElements(const LastElements&) = delete;
  LastElements& operator=(const LastElements&) = delete;
  void* data() const { return data_; }

 private:
  size_t mapped_ = 0;
  char *base_ = nullptr, *data_ = nullptr;
};

template <typename T>
void expect_sums_to_the_end(DType dtype, T one, T two, T sum) {
  for (const size_t count : {1, 7, 2047, 2048, 2049, 4096}) {
    const LastElements a(count * sizeof(T)), b(count * sizeof(T)), out(count * sizeof(T));
    std::fill_n(static_cast<T*>(a.data()), count, one);
    std::fill_n(static_cast<T*>(b.data()), count, two);
    const void* ins[] = {a.data(), b.data()};
    void* outs[] = {out.data()};
    sum_ranges(dtype, ins, outs, count);
    const auto* found = static_cast<const T*>(out.data());
    EXPECT_EQ(std::count(found, found + count, sum), static_cast<std::ptrdiff_t>(count))
        << to_string(dtype) << " " << count;
  }
}

TEST(SumRanges, NothingBehindTheLastElementIsTouched) {
  expect_sums_to_the_end<double>(DType::kF64, 0.5, 0.25, 0.75);
  expect_sums_to_the_end<float>(DType::kF32, 0.5f, 0.25f, 0.75f);
  expect_sums_to_the_end<int64_t>(DType::kI64, 5, -7, -2);
  expect_sums_to_the_end<int32_t>(DType::kI32, 5, -7, -2);
  const auto half = [](float x) { return f32_to_f16(x); };
  const auto brain = [](float x) { return f32_to_bf16(x); };
  expect_sums_to_the_end<uint16_t>(DType::kF16, half(0.5f), half(0.25f), half(0.75f));
  expect_sums_to_the_end<uint16_t>(DType::kBF16, brain(0.5f), brain(0.25f), brain(0.75f));
  float untouched = 3;
  void* outs[] = {&untouched};
  const void* ins[] = {&untouched, &untouched};
  sum_ranges(DType::kF32, ins, outs, 0);
  EXPECT_EQ(untouched, 3);
  const std::string said = thrown_by([&] { sum_ranges(DType::kU8, ins, outs, 1); });
  EXPECT_NE(said.find("does not hold: ranks do not sum u8"), std::string::npos) << said;
}

}  // namespace

}  // namespace vitrail
