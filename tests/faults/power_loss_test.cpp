// A power failure at every moment of several saves: whatever part of the unflushed data and names is lost,
// the newest checkpoint that was reported as saved, or a newer one, exists and is whole.
#include <gtest/gtest.h>

#include <filesystem>

#include "faults/disk_model.h"
#include "faults/run_faulted.h"
#include "faults/small_run.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

int64_t last_saved(const std::string& said) {
  const size_t at = said.rfind("saved ");
  return at == said.npos ? -1 : std::stol(said.substr(at + 6));
}

TEST(PowerLoss, AtEveryCall) {
  const WorkFolder work;
  const std::string run = work / "run";
  fs::create_directories(run + "/checkpoints");
  const std::string expected = "saved 1\nsaved 2\nsaved 3\nsaved 4\n";
  ASSERT_EQ(run_faulted(run, 1, 4, {}, work / "log").said, expected);
  ASSERT_EQ(run_faulted(run, 4, 4, {}, work / "log").said, "saved 4\n");

  DiskModel disk(run + "/checkpoints");
  std::string said;
  uint64_t states = 0;
  const uint64_t random_states = is_long() ? 12 : 1;
  for (const LoggedCall& call : read_log(work / "log")) {
    disk.apply(call);
    if (call.kind == "say") said += call.data;
    for (uint64_t variant = 0; variant < 3 + random_states && !::testing::Test::HasFailure(); ++variant) {
      const auto loss = static_cast<DiskModel::Loss>(std::min<uint64_t>(variant, 3));
      const std::string after = work / "after";
      fs::create_directory(after);
      disk.materialise(after + "/checkpoints", loss, ++states);
      EXPECT_GE(examine(after), last_saved(said)) << "after " << call.kind << ", state " << states;
      fs::remove_all(after);
    }
  }
  EXPECT_EQ(said, expected + "saved 4\n");
  EXPECT_GT(states, is_long() ? 2000u : 200u);
  RecordProperty("states", static_cast<int>(states));
}

// The disk model can fail: without its flushes the same run does lose what it reported.
TEST(PowerLoss, IsSeenWhenNothingIsFlushed) {
  const WorkFolder work;
  const std::string run = work / "run";
  fs::create_directories(run + "/checkpoints");
  run_faulted(run, 1, 1, {}, work / "log");
  DiskModel disk(run + "/checkpoints");
  for (const LoggedCall& call : read_log(work / "log"))
    if (call.kind != "sync") disk.apply(call);
  fs::create_directories(work / "after");
  disk.materialise(work / "after/checkpoints", DiskModel::Loss::kUnflushedData, 1);
  CheckpointStore store(work / "after");
  EXPECT_EQ(store.steps(), std::vector<int64_t>{1});
  EXPECT_FALSE(store.newest_good());
}

}  // namespace
}  // namespace vitrail::testing
