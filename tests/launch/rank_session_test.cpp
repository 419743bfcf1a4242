// What a rank needs around its run: when it needs it, and the faults that the environment asks of it.
#include "launch/rank_session.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "dist/liveness/watch.h"
#include "launch/environment.h"
#include "temp_folder.h"
#include "variable.h"

namespace vitrail {
namespace {

TEST(RankSession, IsNeededByRanksAlone) {
  const Variable watch(kWatchVariable, nullptr), mpi("OMPI_COMM_WORLD_RANK", nullptr),
      slurm("SLURM_STEP_ID", nullptr);
  EXPECT_FALSE(RankSession::needed(1));
  EXPECT_TRUE(RankSession::needed(2));
  EXPECT_FALSE(started_as_rank());
  {
    const Variable watched(kWatchVariable, "a:1/b");
    EXPECT_TRUE(RankSession::needed(1));
  }
  {
    const Variable step("SLURM_STEP_ID", "0"), task("SLURM_PROCID", "1"), pmix("PMIX_RANK", "1");
    EXPECT_TRUE(started_as_rank()) << "by srun";
    EXPECT_TRUE(RankSession::needed(1));
  }
  const Variable rank("OMPI_COMM_WORLD_RANK", "0");
  EXPECT_TRUE(started_as_rank());
  EXPECT_TRUE(RankSession::needed(1));
}

// Before a GPU is used: its driver reads the variable once.
TEST(RankSession, RankThreadsShareTheQueuesOfAGpu) {
  const Variable watch(kWatchVariable, nullptr), mpi("OMPI_COMM_WORLD_RANK", nullptr);
  const char* queues = "CUDA_DEVICE_MAX_CONNECTIONS";
  const Variable none(queues, nullptr);
  {
    const RankSession one({.deadline = 15, .ranks = 1});
    EXPECT_EQ(environment_variable(queues), nullptr);
  }
  const RankSession two({.deadline = 15, .ranks = 2});
  EXPECT_STREQ(environment_variable(queues), "32");
}

// What becomes of a process whose rank 0 of two threads enters its first phase under this fault.
int status_under(const char* fault, const char* marker = nullptr) {
  liveness::Watch watch({.ranks = 2});
  const pid_t pid = ::fork();
  if (pid == 0) {
    const Variable address(kWatchVariable, watch.address().c_str()), mpi("OMPI_COMM_WORLD_RANK", nullptr);
    const std::string all = fault + (marker ? std::string(":") + marker : "");
    const Variable asked(kFaultVariable, all.c_str());
    const RankSession session({.deadline = 15, .ranks = 2});
    ::_exit(5);
  }
  int status = 0;
  while (::waitpid(pid, &status, WUNTRACED | WNOHANG) == 0) watch.turn(20);
  if (WIFSTOPPED(status)) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  return status;
}

TEST(RankSession, ARankDiesOrStopsWhereTheEnvironmentSays) {
  const int killed = status_under("1:init:0:kill"), stopped = status_under("0:init:0:stop");
  EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL) << killed;
  EXPECT_TRUE(WIFSTOPPED(stopped) && WSTOPSIG(stopped) == SIGSTOP) << stopped;
  for (const char* other : {"2:init:0:kill", "1:forward:0:kill", "1:init:1:kill", "1:init:0"}) {
    const int lived = status_under(other);
    EXPECT_TRUE(WIFEXITED(lived) && WEXITSTATUS(lived) == 5) << other;
  }
  const TempFolder folder;
  const std::string marker = (folder.path() / "marker").string();
  EXPECT_TRUE(WIFSIGNALED(status_under("0:init:0:kill", marker.c_str())));
  EXPECT_TRUE(WIFEXITED(status_under("0:init:0:kill", marker.c_str()))) << "once";
}

TEST(RankSession, BitsAreFlippedWhereTheEnvironmentSays) {
  const auto asked = [](const char* text, int rank) {
    const Variable fault(kFaultVariable, text);
    return static_cast<bool>(bit_fault(rank));
  };
  EXPECT_TRUE(asked("1:flip:3:7", 1));
  EXPECT_TRUE(asked("1:flip:3:7:/marker", 1));
  for (const char* other :
       {"1:kill:3:7", "1:flip:3", "x:flip:3:7", "1:flip:x:7", static_cast<const char*>(nullptr)})
    EXPECT_FALSE(asked(other, 1));
  EXPECT_FALSE(asked("1:flip:3:7", 0));
}

}  // namespace
}  // namespace vitrail
