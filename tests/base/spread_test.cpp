#include "base/timing.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(Spread, QuantilesLieBetweenNeighboursInProportion) {
  const Spread spread = spread_of({9, 0, 3, 1, 2, 4, 5, 8, 7, 6, 20});
  EXPECT_EQ(spread.count, 11u);
  EXPECT_EQ(spread.min, 0);
  EXPECT_EQ(spread.median, 5);
  EXPECT_EQ(spread.p90, 9);
  EXPECT_EQ(spread.max, 20);
  EXPECT_DOUBLE_EQ(spread_of({1, 2}).median, 1.5);
  EXPECT_DOUBLE_EQ(spread_of({1, 2}).p90, 1.9);
  EXPECT_EQ(spread_of({4}).p90, 4);
  EXPECT_EQ(spread_of({}).count, 0u);
}

}  // namespace
}  // namespace vitrail
