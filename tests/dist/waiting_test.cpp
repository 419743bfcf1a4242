// How long rank threads wait awake.
#include <gtest/gtest.h>

#include "dist/threads/world.h"

namespace vitrail::threads {
namespace {

// A rank a core is the usual case: nobody needs the core of one that spins.
TEST(Waiting, RanksSpinWhileCoresAreEnoughForAll) {
  const auto long_spin = spin_of(2, 16), short_spin = spin_of(17, 16);
  EXPECT_GT(long_spin, short_spin);
  EXPECT_EQ(spin_of(16, 16), long_spin);
  EXPECT_EQ(spin_of(2, 2), long_spin);
  EXPECT_EQ(spin_of(3, 2), short_spin);
  EXPECT_EQ(spin_of(2, 0), short_spin) << "the system does not tell";
}

}  // namespace
}  // namespace vitrail::threads
