// When a rank counts as slow, and the line that is fitted to what was measured of it.
#include "train/slow_ranks.h"

#include <gtest/gtest.h>

#include "train/find_shares.h"

namespace vitrail {
namespace {

// Adds the same update so often; returns the ranks that were named.
std::vector<int> add(SlowRanks& ranks, const std::vector<double>& seconds, int times) {
  std::vector<int> named;
  for (int i = 0; i < times; ++i)
    for (const SlowRank& slow : ranks.add(seconds)) named.push_back(slow.rank);
  return named;
}

TEST(SlowRanks, OneThatBecomesSlowIsNamedOnce) {
  SlowRanks ranks(3);
  EXPECT_TRUE(add(ranks, {9, 9, 9}, 1).empty());  // the first update is no measure
  EXPECT_TRUE(add(ranks, {0.1, 0.1, 0.2}, 50).empty());
  EXPECT_TRUE(add(ranks, {0.1, 0.18, 0.2}, SlowRanks::kLong - 1).empty());
  EXPECT_EQ(add(ranks, {0.1, 0.18, 0.2}, 1), (std::vector<int>{1}));
  EXPECT_TRUE(add(ranks, {0.1, 0.18, 0.2}, 50).empty());
  add(ranks, {0.1, 0.1, 0.2}, 1);  // it has recovered, and may become slow again
  EXPECT_EQ(add(ranks, {0.1, 0.18, 0.2}, SlowRanks::kLong), (std::vector<int>{1}));
}

TEST(SlowRanks, WhatAllHaveInCommonIsNobodysFault) {
  SlowRanks ranks(3);
  add(ranks, {0.1, 0.1, 0.2}, 20);
  EXPECT_TRUE(add(ranks, {0.2, 0.2, 0.4}, 40).empty());
  SlowRanks two(2);
  add(two, {0.1, 0.1}, 20);
  EXPECT_EQ(add(two, {0.1, 0.2}, 40), (std::vector<int>{1}));
}

TEST(SlowRanks, NoiseOfShortUpdatesAndSingleOnesIsNone) {
  SlowRanks ranks(2);
  add(ranks, {0.001, 0.001}, 20);
  EXPECT_TRUE(add(ranks, {0.001, 0.01}, 40).empty());
  SlowRanks other(2);
  add(other, {0.1, 0.1}, 20);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(add(other, {0.1, 0.3}, SlowRanks::kLong - 1).empty());
    EXPECT_TRUE(add(other, {0.1, 0.1}, 1).empty());
  }
}

TEST(SlowRanks, TheUsualTimeIsThatOfTheFirstUpdates) {
  SlowRanks ranks(2);
  add(ranks, {5, 5}, 1);
  add(ranks, {0.1, 0.2}, SlowRanks::kUsual - 1);
  EXPECT_FALSE(ranks.just_known());
  add(ranks, {7, 7}, 1);
  EXPECT_TRUE(ranks.just_known());
  EXPECT_EQ(ranks.usual(), (std::vector<double>{0.1, 0.2}));
}

TEST(FittedSpeed, IsALineThroughTheNewestPoint) {
  const PlaceSpeed one = fitted_speed({{16, 0.8}});
  EXPECT_DOUBLE_EQ(one.fixed_s, 0);
  EXPECT_DOUBLE_EQ(one.per_image_s, 0.05);
  const PlaceSpeed two = fitted_speed({{16, 0.9}, {8, 0.5}});
  EXPECT_NEAR(two.fixed_s, 0.1, 1e-12);
  EXPECT_NEAR(two.per_image_s, 0.05, 1e-12);
  // Points too near to each other, and slopes that no rank has, say nothing.
  EXPECT_NEAR(fitted_speed({{16, 0.9}, {15, 0.3}}).per_image_s, 0.02, 1e-12);
  EXPECT_NEAR(fitted_speed({{16, 0.1}, {8, 0.5}}).per_image_s, 0.03125, 1e-12);
}

// 16 images in 1.6 s: 0.1 s each, were it not for points that are a quarter of them away or more. Of these
// the furthest counts, and of two as far the first.
TEST(FittedSpeed, ASlopeNeedsPointsThatAreApart) {
  using Points = std::vector<std::pair<int64_t, double>>;
  const struct {
    Points before;
    double slope;
  } rows[] = {{{{13, 1.36}}, 0.1},  // three away
              {{{12, 1.28}}, 0.08},
              {{{19, 1.84}}, 0.1},
              {{{20, 1.92}}, 0.08},
              {{{12, 1.28}, {20, 1.96}}, 0.08},
              {{{20, 1.96}, {12, 1.28}}, 0.09},
              {{{12, 1.28}, {21, 2.05}}, 0.09},
              {{{21, 2.05}, {12, 1.28}}, 0.09},
              {{{16, 1.2}}, 0.1},   // no further away than itself
              {{{8, 1.21}}, 0.05},  // at least half
              {{{8, 0.79}}, 0.1}};  // at most all of what the newest point says
  for (const auto& row : rows) {
    Points points = row.before;
    points.emplace_back(16, 1.6);
    const PlaceSpeed speed = fitted_speed(points);
    EXPECT_NEAR(speed.per_image_s, row.slope, 1e-12) << row.before[0].first << ", " << row.before[0].second;
    EXPECT_NEAR(speed.fixed_s + 16 * speed.per_image_s, 1.6, 1e-12) << "through the newest point";
  }
}

}  // namespace
}  // namespace vitrail
