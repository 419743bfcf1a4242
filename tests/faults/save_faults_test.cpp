// One save, interrupted at every system call it makes: by a crash, by an error, by half a write.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "faults/run_faulted.h"
#include "io/checkpoint/checkpoint.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// A save of a step, by one rank or several, in a folder that already holds the steps 1 and 2.
struct SaveCase {
  int step, ranks;
};
class SaveFaults : public ::testing::TestWithParam<SaveCase> {
 protected:
  void SetUp() override {
    const std::string folder = work_ / "before";
    fs::create_directories(folder + "/checkpoints");
    ASSERT_EQ(run_faulted(folder, 1, 2, {}).said, "saved 1\nsaved 2\n");
    ASSERT_EQ(examine(folder), 2);
  }
  std::string fresh_copy() {
    std::string folder = work_ / "run";
    fs::remove_all(folder);
    fs::copy(work_ / "before", folder, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    return folder;
  }
  long calls(const std::string& cls) { return save(fresh_copy(), {cls, "0", 0}).calls; }
  int step() const { return GetParam().step; }
  Outcome save(const std::string& folder, const Fault& fault) const {
    return run_faulted(folder, step(), step(), fault, "", kKept, GetParam().ranks);
  }
  std::string success() const { return "saved " + std::to_string(step()) + "\n"; }

  // The next run finds a good checkpoint, finishes the work and cleans up.
  void expect_recovery(const std::string& folder) {
    EXPECT_EQ(save(folder, {}).said, success());
    EXPECT_EQ(examine(folder), std::max(step(), 2));
    EXPECT_TRUE(unfinished_in(folder).empty());
  }

  void expect_survives_death(const Fault& fault) {
    SCOPED_TRACE(strf("%s at %s call %ld", fault.action.c_str(), fault.cls.c_str(), fault.at));
    const std::string folder = fresh_copy();
    const Outcome outcome = save(folder, fault);
    EXPECT_TRUE(outcome.killed);
    const int64_t newest = examine(folder);
    EXPECT_GE(newest, outcome.said == success() ? step() : 2);
    expect_recovery(folder);
  }

  void expect_survives_error(const Fault& fault, bool must_fail) {
    SCOPED_TRACE(strf("%s at %s call %ld", fault.action.c_str(), fault.cls.c_str(), fault.at));
    const std::string folder = fresh_copy();
    const Outcome outcome = save(folder, fault);
    EXPECT_FALSE(outcome.killed);
    const int64_t newest = examine(folder);
    EXPECT_GE(newest, 2);
    if (outcome.said == success()) {
      EXPECT_FALSE(must_fail);
      EXPECT_EQ(outcome.exit_code, 0);
      EXPECT_GE(newest, step());
    } else {
      EXPECT_EQ(outcome.said.substr(0, 7), "failed ");
      EXPECT_EQ(outcome.exit_code, exit_code(ErrorKind::kWrite)) << outcome.said;
    }
    EXPECT_TRUE(fault.cls == "unlink" || unfinished_in(folder).empty()) << outcome.said;
    expect_recovery(folder);
  }

 private:
  WorkFolder work_;
};

TEST_P(SaveFaults, KilledAtEveryCall) {
  const long total = calls("any");
  ASSERT_GT(total, 40);
  for (long k = 1; k <= total && !HasFailure(); ++k) expect_survives_death({"any", "kill", k});
  for (long k = 1, n = calls("write"); k <= n && !HasFailure(); ++k)
    expect_survives_death({"write", "torn", k});
}

TEST_P(SaveFaults, ErrorAtEveryCall) {
  const std::vector<int> codes = is_long() ? std::vector{ENOSPC, EIO, EDQUOT, EROFS} : std::vector{EIO};
  for (const char* cls : {"open", "write", "fsync", "close", "rename", "mkdir", "symlink", "unlink"}) {
    const long total = calls(cls);
    ASSERT_GT(total, 0) << cls;
    for (const int code : codes)
      for (long k = 1; k <= total && !HasFailure(); ++k)
        expect_survives_error({cls, std::to_string(code), k}, std::string(cls) != "unlink");
  }
}

TEST_P(SaveFaults, NoRoomAtEveryWrite) {
  for (long k = 1, n = calls("write"); k <= n && !HasFailure(); ++k)
    for (const int code : {ENOSPC, EDQUOT}) expect_survives_error({"write", std::to_string(code), k}, true);
}

TEST_P(SaveFaults, InterruptionsAndShortWritesAreNoErrors) {
  for (const char* cls : {"open", "write"})
    for (long k = 1, n = calls(cls); k <= n && !HasFailure(); ++k) {
      const std::string folder = fresh_copy();
      EXPECT_EQ(save(folder, {cls, std::to_string(EINTR), k}).said, success());
      EXPECT_EQ(examine(folder), std::max(step(), 2));
    }
  for (long k = 1, n = calls("write"); k <= n && !HasFailure(); ++k) {
    const std::string folder = fresh_copy();
    EXPECT_EQ(save(folder, {"write", "short", k}).said, success());
    EXPECT_EQ(examine(folder), std::max(step(), 2));
  }
}

// A disk error is no lack of space: it must cost none of five good checkpoints.
TEST(ManyKept, AnErrorCostsNoneAndLackOfRoomOne) {
  const WorkFolder work;
  const std::string before = work / "before", folder = work / "run";
  fs::create_directories(before + "/checkpoints");
  run_faulted(before, 1, 5, {}, "", 5);
  const auto save = [&](const Fault& fault) {
    fs::remove_all(folder);
    fs::copy(before, folder, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    return run_faulted(folder, 6, 6, fault, "", 5);
  };
  for (const char* cls : {"open", "write", "fsync", "close", "rename", "mkdir"})
    for (long k = 1, n = save({cls, "0", 0}).calls; k <= n && !::testing::Test::HasFailure(); ++k) {
      SCOPED_TRACE(strf("%s call %ld", cls, k));
      const Outcome outcome = save({cls, std::to_string(EIO), k});
      EXPECT_GE(examine(folder), 5);
      EXPECT_GE(CheckpointStore(folder).steps().size(), 5u) << outcome.said;
      EXPECT_EQ(outcome.said.find("made room"), std::string::npos) << outcome.said;
    }
  const long last_write = save({"write", "0", 0}).calls;
  for (const int code : {ENOSPC, EDQUOT}) {
    EXPECT_EQ(save({"write", std::to_string(code), last_write}).said, "made room: 1\nsaved 6\n");
    EXPECT_EQ(examine(folder), 6);
  }
}

// A new step, after which the oldest is pruned; and a step that is there already, which is swapped. Three
// ranks fail at other calls: each writes its piece, and the first one commits.
INSTANTIATE_TEST_SUITE_P(Steps, SaveFaults,
                         ::testing::Values(SaveCase{3, 1}, SaveCase{2, 1}, SaveCase{3, 3}, SaveCase{2, 3}),
                         [](const auto& save) {
                           return strf("Step%dBy%d", save.param.step, save.param.ranks);
                         });

}  // namespace
}  // namespace vitrail::testing
