// The device that each rank of a host gets.
#include "plan/devices.h"

#include <gtest/gtest.h>

#include "base/error.h"

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

TEST(DevicesOfRanks, ARankWithoutAGpuOfItsOwnIsRefusedUnlessTheyShare) {
  for (const int local : {0, 1, 2}) EXPECT_EQ(gpu_of({.local = local, .sharing = 5}, 3), local);
  for (const int local : {3, 4}) {
    try {
      gpu_of({.local = local, .sharing = 5}, 3);
      ADD_FAILURE() << local;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kDevice);
      EXPECT_EQ(exit_code(error.kind()), 69);
      EXPECT_EQ(error.message(), strf("rank %d of this host wants GPU %d: this machine has 3", local, local));
      EXPECT_NE(error.hint().find("at most 3 ranks here"), std::string::npos) << error.hint();
    }
    EXPECT_EQ(gpu_of({.local = local, .sharing = 5, .shares_gpus = true}, 3), local - 3);
  }
  // A host without any is told by what opens the device.
  EXPECT_EQ(gpu_of({.local = 4, .sharing = 5}, 0), 4);
}

}  // namespace
}  // namespace vitrail
