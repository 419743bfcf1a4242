// What dropout keeps: by its rate, scaled so that the mean stays, each element or each sample independently.
#include "ops/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "run_op.h"

namespace vitrail {
namespace {

constexpr int64_t kSamples = 400, kEach = 50;

Values dropped(const char* backend, DType dtype, double p, DropUnit unit, int64_t seed, int64_t step) {
  const std::vector<Shape> shapes = {{{'B', kSamples}, {'D', kEach}}, {{'Z', kCounterCount}}};
  const OpCase c{"dropout",
                 make_op<DropoutOp>(p, unit, uint64_t{5}),
                 shapes,
                 {false, false},
                 {Role::kPlain, Role::kCounters}};
  const Values ones(static_cast<size_t>(kSamples * kEach), 1.0);
  return run_op(c, shapes, {ones, {static_cast<double>(seed), static_cast<double>(step), 0}},
                {.backend = backend, .dtype = dtype})
      .front()
      .values;
}

TEST(Dropout, LeavesWhatTheRateSaysAndKeepsTheMean) {
  for (const auto& [backend, dtype] : {std::pair{"ref", DType::kF64}, {"cpu", DType::kF32}})
    for (const double p : {0.1, 0.3, 0.75}) {
      SCOPED_TRACE(strf("%s %g", backend, p));
      const Values values = dropped(backend, dtype, p, DropUnit::kElement, 1, 2);
      double zeros = 0;
      for (double value : values) {
        zeros += value == 0;
        EXPECT_TRUE(value == 0 || std::abs(value - 1 / (1 - p)) < 1e-6) << value;
      }
      const auto count = static_cast<double>(values.size());
      EXPECT_NEAR(zeros, p * count, 5 * std::sqrt(p * (1 - p) * count));
    }
}

TEST(Dropout, OfSamplesTakesThemWhole) {
  for (const auto& [backend, dtype] : {std::pair{"ref", DType::kF64}, {"cpu", DType::kF32}})
    for (const double p : {0.2, 0.6}) {
      SCOPED_TRACE(strf("%s %g", backend, p));
      const Values values = dropped(backend, dtype, p, DropUnit::kSample, 1, 2);
      double gone = 0;
      for (size_t sample = 0; sample < kSamples; ++sample) {
        const double first = values[sample * kEach];
        for (size_t i = 0; i < kEach; ++i) ASSERT_EQ(values[sample * kEach + i], first);
        EXPECT_TRUE(first == 0 || std::abs(first - 1 / (1 - p)) < 1e-6) << first;
        gone += first == 0;
      }
      EXPECT_NEAR(gone, p * kSamples, 5 * std::sqrt(p * (1 - p) * kSamples));
    }
}

TEST(Dropout, ItsThresholdIsTheLeastIntegerThatIsKept) {
  const auto at = [](double p) { return DropoutOp(p, DropUnit::kElement, 0).threshold(); };
  EXPECT_EQ(at(0), 0u);
  EXPECT_EQ(at(0.5), uint64_t{1} << 52);
  EXPECT_EQ(at(0x1p-54), 1u);
  for (const double p : {0.1, 0.3, 0.75}) {
    EXPECT_GE(static_cast<double>(at(p)) * 0x1p-53, p);
    EXPECT_LT(static_cast<double>(at(p) - 1) * 0x1p-53, p);
  }
}

TEST(Dropout, EverySeedAndStepHasItsOwnMask) {
  const auto mask = [](int64_t seed, int64_t step) {
    return dropped("ref", DType::kF64, 0.5, DropUnit::kElement, seed, step);
  };
  EXPECT_EQ(mask(1, 1), mask(1, 1));
  EXPECT_NE(mask(1, 1), mask(1, 2));
  EXPECT_NE(mask(1, 1), mask(2, 1));
  EXPECT_NE(mask(1, 2), mask(2, 1));
}

}  // namespace
}  // namespace vitrail
