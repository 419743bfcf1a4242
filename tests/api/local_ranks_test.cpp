// The ranks that train() of the public API makes of its options.
#include <gtest/gtest.h>

#include "api/settings.h"
#include "dist/nccl_world.h"

namespace vitrail {
namespace {

const char* kElsewhere = "/elsewhere/libnccl.so.2";

const char* named(const char* name) {
  return std::string_view(name) == kNcclVariable ? kElsewhere : nullptr;
}

TrainConfig config_of(int ranks) {
  return resolved(training_config(R"({"data": {"train": "synthetic:3x16x16x4x64"}, "train": {"steps": 1}})"),
                  ranks);
}

TEST(LocalRanks, LookUpTheVariablesOfTheCaller) {
  const TrainOptions options{.folder = "run", .threads = 1, .ranks = 2, .variables = named};
  const LocalRanks ranks = local_ranks(options, config_of(2));
  ASSERT_EQ(ranks.worlds.size(), 2u);
  EXPECT_EQ(ranks.sharing, 2);
  ASSERT_TRUE(ranks.variables);
  EXPECT_STREQ(ranks.variables(kNcclVariable), kElsewhere);
}

// Under mpirun a program that calls train() is not one of its ranks: they are threads, whatever is set.
TEST(LocalRanks, AreThreadsWhateverTheEnvironmentSays) {
  const TrainOptions options{
      .folder = "run", .threads = 1, .ranks = 2, .variables = [](const char*) { return "1"; }};
  EXPECT_EQ(local_ranks(options, config_of(2)).worlds.size(), 2u);
}

}  // namespace
}  // namespace vitrail
