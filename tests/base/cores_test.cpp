// Threads that are bound to cores, and how cores are told.
#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace vitrail {
namespace {

// The cores that the system lets this thread run on.
std::vector<int> cores_of_thread() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

std::vector<int> cores_of_a_new_thread() {
  std::vector<int> cores;
  std::thread([&] { cores = cores_of_thread(); }).join();
  return cores;
}

TEST(Cores, AreToldInRanges) {
  EXPECT_EQ(cores_text({}), "");
  EXPECT_EQ(cores_text({5}), "5");
  EXPECT_EQ(cores_text({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(cores_text({1, 3, 4, 7, 8, 9}), "1,3-4,7-9");
}

TEST(BoundThread, KeepsItselfAndWhatItStartsToItsCores) {
  const std::vector<int> all = allowed_cores();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all, cores_of_thread());
  const std::vector<int> last = {all.back()};
  {
    const BoundThread bound(last);
    EXPECT_EQ(cores_of_thread(), last);
    EXPECT_EQ(cores_of_a_new_thread(), last);
    EXPECT_EQ(allowed_cores(), all) << "as before";
  }
  EXPECT_EQ(cores_of_thread(), all);
  EXPECT_EQ(allowed_cores(), all);
}

TEST(BoundThread, CanBeSetFreeForAWhile) {
  const std::vector<int> all = allowed_cores(), first = {all.front()};
  const BoundThread bound(first);
  {
    const BoundThread unbound(allowed_cores());
    EXPECT_EQ(cores_of_thread(), all);
    EXPECT_EQ(cores_of_a_new_thread(), all);
  }
  EXPECT_EQ(cores_of_thread(), first);
  EXPECT_EQ(allowed_cores(), all);
}

TEST(BoundThread, WithoutCoresChangesNothing) {
  const std::vector<int> all = allowed_cores();
  const BoundThread bound({});
  EXPECT_EQ(cores_of_thread(), all);
}

}  // namespace
}  // namespace vitrail
