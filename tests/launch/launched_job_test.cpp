// How a job ends and when it is started again. Shells stand for jobs, and this program itself for the one
// that `vitrail launch` starts.
#include "launch/launched_job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "dist/liveness/heartbeat.h"
#include "io/find_model.h"
#include "launch/environment.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

constexpr const char* kPlayed = "VITRAIL_TEST_PLAYED";  // a file with a line for every start

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Where the environment says so, this process is a job: it notes its own words and ends with the code that
// the first of them has for this start, "69,69s4,0"; s4 stands for step 4, which is made before, an e for an
// error that its first rank tells with the code, a v for a rank that vanishes before the others know.
[[maybe_unused]] const bool kPlays = [] {
  const char* path = environment_variable(kPlayed);
  if (!path) return false;
  std::ifstream words("/proc/self/cmdline");
  std::string text{std::istreambuf_iterator<char>(words), {}};
  std::replace(text.begin(), text.end(), '\0', ' ');
  text.erase(0, text.find(' ') + 1);
  const std::string codes = text.substr(0, text.find(' '));
  const size_t start = lines_of(path).size();
  std::ofstream(path, std::ios::app) << text << "\n";
  const std::string code(split(codes, ',').at(start));
  if (code.ends_with('e')) {
    liveness::Heartbeat beat({.address = environment_variable(kWatchVariable), .ranks = 2});
    beat.failed(0, std::stoi(code), false, "the device is lost");
  }
  if (code.ends_with('v')) {
    { const liveness::Heartbeat gone({.address = environment_variable(kWatchVariable), .ranks = 2}); }
    liveness::Heartbeat other({.address = environment_variable(kWatchVariable), .first = 1, .ranks = 2});
    other.verdict(20);
  }
  if (const size_t made = code.find('s'); made != std::string::npos) {
    const int64_t step = std::stoi(code.substr(made + 1));
    liveness::Heartbeat beat({.address = environment_variable(kWatchVariable)});
    beat.pulse(0).begin_step(step);
    beat.pulse(0).end_step();
    beat.pulse(0).begin_step(step + 1);
    beat.leave();
  }
  ::_exit(std::stoi(code));
}();

struct Ended {
  JobEnd end;
  std::vector<std::string> starts;
};

Ended run_played(const std::string& codes, int64_t most_restarts, bool resumed = false) {
  const TempFolder folder;
  const std::string played = (folder.path() / "played").string();
  ::setenv(kPlayed, played.c_str(), 1);
  const auto nothing = [](const std::string&) {};
  JobSettings settings{.watch = {.ranks = 1},
                       .most_restarts = most_restarts,
                       .resumed = resumed,
                       .pause_s = 0.01,
                       .say = nothing,
                       .error = nothing};
  Ended ended{run_job({.by = LaunchBy::kThreads, .command = {codes}}, settings), {}};
  ::unsetenv(kPlayed);
  ended.starts = lines_of(played);
  return ended;
}

JobEnd run_shell(const std::string& script) {
  const SignalGuard signals;
  return LaunchedJob({.words = {"/bin/sh", "-c", script}}, {.ranks = 1}, signals).run();
}

TEST(LaunchedJob, EndsAsItsProcessDoes) {
  EXPECT_EQ(run_shell("exit 0").code, 0);
  const JobEnd failed = run_shell("exit 3"), killed = run_shell("kill -9 $$"), stopped = run_shell("exit 75");
  EXPECT_EQ(failed.code, 3);
  EXPECT_NE(failed.reason.find("sh ended with exit code 3"), std::string::npos) << failed.reason;
  EXPECT_EQ(killed.code, 137);
  EXPECT_EQ(killed.reason, "sh was killed by signal 9");
  EXPECT_EQ(stopped.code, 75);
  EXPECT_EQ(stopped.reason, "") << "it was asked to";
}

TEST(LaunchedJob, SaysWhetherItsRanksEverCame) {
  EXPECT_TRUE(run_shell("exit 3").unstarted);
  EXPECT_FALSE(run_shell("exit 75").unstarted || run_shell("exit 0").unstarted);
  EXPECT_EQ(run_shell("exit 3").lost, -1);
}

// The codes of shells for a program that a signal has ended are above 128: of these the signal is known.
TEST(LaunchedJob, ARankThatVanishedIsToldWithItsSignal) {
  const auto ended = [](const char* code) {
    const TempFolder folder;
    const std::string played = (folder.path() / "played").string();
    ::setenv(kPlayed, played.c_str(), 1);
    const SignalGuard signals;
    const JobEnd end = LaunchedJob({.words = {this_program().string(), code}}, {.ranks = 2}, signals).run();
    ::unsetenv(kPlayed);
    EXPECT_EQ(end.lost, 0) << code;
    EXPECT_EQ(end.loss, liveness::Loss::kVanished) << code;
    EXPECT_FALSE(end.unstarted);
    return std::to_string(end.code) + end.reason.substr(std::min(end.reason.rfind(" ("), end.reason.size()));
  };
  const std::string unknown = ended("3v");
  EXPECT_EQ(unknown.substr(0, 3), "137");
  EXPECT_EQ(unknown.find("signal"), std::string::npos);
  EXPECT_EQ(ended("128v").find("signal"), std::string::npos);
  EXPECT_EQ(ended("128v").substr(0, 3), "137");
  EXPECT_EQ(ended("129v"), "129 (signal 1)");
  EXPECT_EQ(ended("139v"), "139 (signal 11)");
  EXPECT_EQ(ended("137v").substr(0, 3), "137");
  EXPECT_EQ(ended("137v").find("signal"), std::string::npos);
}

// A job that a signal ended is started again, and each start is told.
TEST(RunJob, TellsWhyAndHowOftenItStartsAgain) {
  const TempFolder folder;
  const std::string played = (folder.path() / "played").string();
  ::setenv(kPlayed, played.c_str(), 1);
  std::vector<std::string> said, errors;
  const JobEnd end = run_job({.by = LaunchBy::kThreads, .command = {"69,143,0"}},
                             {.watch = {.ranks = 1},
                              .most_restarts = 5,
                              .pause_s = 0.001,
                              .say = [&](const std::string& line) { said.push_back(line); },
                              .error = [&](const std::string& line) { errors.push_back(line); }});
  ::unsetenv(kPlayed);
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(said, (std::vector<std::string>{"1 rank as threads of one process",
                                            "restart 1 of 5, from the newest checkpoint",
                                            "restart 2 of 5, from the newest checkpoint"}));
  EXPECT_EQ(errors, (std::vector<std::string>{
                        "error: test_launch ended with exit code 69 before its ranks could report",
                        "error: test_launch ended with exit code 143 before its ranks could report"}));
}

TEST(RunJob, AMistakeIsNotMadeAgain) {
  for (const char* code : {"64,0", "65,0", "73,0", "1,0"}) {
    const Ended ended = run_played(code, 3);
    EXPECT_EQ(ended.starts.size(), 1u) << code;
    EXPECT_EQ(ended.end.code, std::stoi(code));
  }
}

TEST(RunJob, ALostRankIsStartedAgainAsOftenAsAllowed) {
  for (const char* code : {"69,69,0", "70,70,0", "71,71,0"}) {
    const Ended ended = run_played(code, 1);
    EXPECT_EQ(ended.starts.size(), 2u) << code;
    EXPECT_EQ(ended.end.code, std::stoi(code));
  }
  EXPECT_EQ(run_played("69,0", 0).starts.size(), 1u);
}

// A step that an earlier start had made is no new one.
TEST(RunJob, GivesUpAfterTwoRestartsWithoutANewStep) {
  for (const char* codes : {"69,69,69,69,0", "69s5,69s5,69s4,0", "69s5,69s3,69s4,0"}) {
    const Ended ended = run_played(codes, 9);
    EXPECT_EQ(ended.starts.size(), 3u) << codes;
    EXPECT_EQ(ended.end.code, 69) << codes;
    EXPECT_NE(ended.end.reason.find("gave up after 2 restarts without a new step: "), std::string::npos)
        << ended.end.reason;
  }
  const Ended later = run_played("69s5,69s6,69s6,69s6,0", 9);
  EXPECT_EQ(later.starts.size(), 4u) << "the first restart made one";
}

TEST(RunJob, WhileStepsAreMadeItGoesOnFromTheNewestCheckpoint) {
  const std::string codes = "69s5,69s4,69s6,69s6,69s7,0";
  const Ended ended = run_played(codes, 9);
  EXPECT_EQ(ended.end.code, 0) << ended.end.reason;
  const std::string resumed = codes + " --resume --ranks 1 ";
  EXPECT_EQ(ended.starts,
            (std::vector<std::string>{codes + " --ranks 1 ", resumed, resumed, resumed, resumed, resumed}));
  EXPECT_EQ(run_played("69,0", 1, true).starts.back(), "69,0 --ranks 1 ") << "the command says so itself";
}

// Whether such a job went on with fewer ranks, and how often it was started.
std::pair<int, size_t> run_on_hosts(const std::string& codes) {
  const TempFolder folder;
  const std::string played = (folder.path() / "played").string();
  ::setenv(kPlayed, played.c_str(), 1);
  const auto nothing = [](const std::string&) {};
  int asked = 0;
  run_job({.ranks = 2, .by = LaunchBy::kThreads, .hosts = hosts_from("vt1:1,vt2:1"), .command = {codes}},
          {.watch = {.ranks = 2, .limits = {0.1}},
           .most_restarts = 3,
           .pause_s = 0.01,
           .fewer = [&](std::vector<int>&) { return ++asked, std::vector<std::string>{}; },
           .say = nothing,
           .error = nothing});
  ::unsetenv(kPlayed);
  return {asked, lines_of(played).size()};
}

// A device that fails, or an exchange that breaks, ends with the code of a host that is gone.
TEST(RunJob, AHostWhoseRankTellsAnErrorIsKept) {
  EXPECT_EQ(run_on_hosts("69e,69e,69e,0"), (std::pair<int, size_t>(0, 3)));
  EXPECT_EQ(run_on_hosts("69e,0"), (std::pair<int, size_t>(0, 2)));
}

// On one host a rank that is lost twice is left out.
TEST(RunJob, GoesOnWithTheRanksThatAreLeft) {
  const TempFolder folder;
  const std::string played = (folder.path() / "played").string(), codes = "69e,69e,0";
  ::setenv(kPlayed, played.c_str(), 1);
  std::vector<std::string> said;
  const JobEnd end = run_job({.ranks = 2, .by = LaunchBy::kThreads, .command = {codes}},
                             {.watch = {.ranks = 2, .limits = {0.1}},
                              .most_restarts = 3,
                              .pause_s = 0.01,
                              .fewer =
                                  [](std::vector<int>&) {
                                    return std::vector<std::string>{"--set", "train.batch=4"};
                                  },
                              .say = [&](const std::string& line) { said.push_back(line); },
                              .error = [](const std::string&) {}});
  ::unsetenv(kPlayed);
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(lines_of(played), (std::vector<std::string>{codes + " --ranks 2 ", codes + " --resume --ranks 2 ",
                                                        codes + " --resume --set train.batch=4 --ranks 1 "}));
  EXPECT_EQ(std::count(said.begin(), said.end(), "going on with 1 of 2 ranks, without rank 0"), 1);
}

// mpirun ends with 1 where it cannot reach a host; of a job that it has started before that is no mistake.
TEST(RunJob, ARestartThatReachesNobodyIsTriedAgain) {
  EXPECT_EQ(run_played("69s4,1,0", 9).end.code, 0);
  EXPECT_EQ(run_played("1,0", 9).end.code, 1);
}

TEST(PlanLaunch, WithoutMpirunRanksAreThreadsUnlessProcessesAreNeeded) {
  const TempFolder empty;
  const std::string path = environment_variable("PATH");
  ::setenv("PATH", empty.path().c_str(), 1);
  const LaunchPlan plan = plan_launch({.ranks = 4, .command = {"train", "--out", "x"}});
  EXPECT_FALSE(plan.mpi);
  EXPECT_EQ(std::vector(plan.words.begin() + 1, plan.words.end()),
            (std::vector<std::string>{"train", "--out", "x", "--ranks", "4"}));
  EXPECT_NE(plan.note.find("mpirun is not in PATH"), std::string::npos) << plan.note;
  EXPECT_THROW(plan_launch({.ranks = 4, .by = LaunchBy::kMpirun}), Error);
  EXPECT_THROW(plan_launch({.ranks = 4, .hosts = hosts_from("vt1:2,vt2:2")}), Error);
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace vitrail
