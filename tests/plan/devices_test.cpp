// The device that each rank of a host gets.
#include "plan/devices.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

TEST(DevicesOfRanks, CoresAreSharedOutAndEachHasOneAtLeast) {
  const auto threads = [](int asked, int sharing) {
    return device_of_rank("cpu", "cpu", asked, "", {.local = 0, .sharing = sharing}).threads;
  };
  const int all = threads(0, 1);
  EXPECT_EQ(threads(0, all), 1);
  EXPECT_EQ(threads(0, 1000), 1) << "more ranks than cores";
  EXPECT_EQ(threads(3, 1000), 3) << "as it was asked for";
}

}  // namespace
}  // namespace vitrail
