#include "data/augment/draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace vitrail {
namespace {

constexpr int kDraws = 20000;

struct Moments {
  double mean = 0, variance = 0;
};

template <typename Sample>
Moments moments_of(const Sample& sample) {
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = sample();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, squares / kDraws - mean * mean};
}

// Each bound is above four standard errors of the estimate.
TEST(Draw, HasTheMomentsItNames) {
  Draw draw(7, 1, 2, "moments");
  const Moments uniform = moments_of([&] { return draw.uniform(); });
  EXPECT_NEAR(uniform.mean, 0.5, 0.01);
  EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.004);
  const Moments normal = moments_of([&] { return draw.normal(); });
  EXPECT_NEAR(normal.mean, 0, 0.03);
  EXPECT_NEAR(normal.variance, 1, 0.05);
  for (const double alpha : {0.1, 0.2, 0.8, 1.0, 2.0, 16.0}) {
    SCOPED_TRACE(alpha);
    const Moments beta = moments_of([&] { return draw.beta(alpha); });
    EXPECT_NEAR(beta.mean, 0.5, 0.015);
    EXPECT_NEAR(beta.variance, 1 / (4 * (2 * alpha + 1)), 0.006);
  }
}

TEST(Draw, BetaStaysInRangeForTinyAlpha) {
  Draw draw(1);
  for (int i = 0; i < 2000; ++i) {
    const double x = draw.beta(0.001);
    ASSERT_TRUE(x >= 0 && x <= 1) << x;
  }
}

TEST(Draw, IntegersCoverTheirRangeEvenly) {
  Draw draw(3, 0, 0, "integers");
  std::vector<int> counts(7);
  for (int i = 0; i < 7000; ++i) ++counts[static_cast<size_t>(draw.integer(-3, 3) + 3)];
  for (int count : counts) EXPECT_NEAR(count, 1000, 130);
  EXPECT_EQ(draw.integer(5, 5), 5);
}

TEST(Draw, EveryPartOfTheNameMatters) {
  std::set<uint64_t> first;
  for (uint64_t seed : {0, 1})
    for (int64_t epoch : {0, 1, 2})
      for (int64_t position : {0, 1, 2, 3})
        for (const char* op : {"crop", "flip"}) first.insert(Draw(seed, epoch, position, op).bits());
  EXPECT_EQ(first.size(), 48u);
  EXPECT_EQ(Draw(4, 5, 6, "crop").bits(), Draw(4, 5, 6, "crop").bits());
}

}  // namespace
}  // namespace vitrail
