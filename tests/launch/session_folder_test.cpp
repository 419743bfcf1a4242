// Session folders of Open MPI: which jobs get one of their own, and that it goes with the job, or after a
// launcher that was killed.
#include "launch/session_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <fstream>

#include "base/process_mark.h"
#include "launch/launched_job.h"
#include "temp_folder.h"
#include "variable.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBase = "OMPI_MCA_orte_tmpdir_base";
constexpr const char* kScheduled[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE"};
constexpr const char* kSessionsChosen[] = {kBase,
                                           "OMPI_MCA_orte_local_tmpdir_base",
                                           "OMPI_MCA_orte_remote_tmpdir_base",
                                           "OMPI_MCA_orte_top_session_dir",
                                           "OMPI_MCA_orte_no_session_dirs",
                                           "OMPI_MCA_orte_default_hostfile"};

// A host where nobody has said anything about sessions.
class SessionParent : public ::testing::Test {
 protected:
  void SetUp() override {
    if (ProcessMark::current().host.size() > 24) GTEST_SKIP() << "this host's name leaves no room in /tmp";
    for (const char* name : kScheduled) unset_.emplace_back(name, nullptr);
    for (const char* name : kSessionsChosen) unset_.emplace_back(name, nullptr);
    unset_.emplace_back("TMPDIR", nullptr);
  }

 private:
  std::deque<Variable> unset_;
};

std::string sessions_of(const LaunchRequest& request) {
  const TempFolder host;
  const std::string mpirun = host.file("mpirun", "");
  fs::permissions(mpirun, fs::perms::owner_all);
  return plan_launch(request, {.path = host.path().string(),
                               .program = "/nowhere/vitrail",
                               .report = [](const fs::path&) { return MpiReport{.library = "MPI"}; }})
      .sessions;
}

std::vector<std::string> entries_of(const TempFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  return names;
}

pid_t dead_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

fs::path left_by(const std::string& mark, const TempFolder& folder, const std::string& drawn = "aB3xYz") {
  fs::path left = folder.path() / ("vitrail-" + mark + "-" + drawn);
  fs::create_directories(left / "ompi.vm.0/pid.7");
  std::ofstream(left / "ompi.vm.0/contact.txt") << "x";
  return left;
}

JobEnd run_job_with_sessions(const TempFolder& folder, const std::string& script) {
  const SignalGuard signals;
  return LaunchedJob({.words = {"/bin/sh", "-c", script}, .sessions = folder.path()}, {.ranks = 1}, signals)
      .run();
}

TEST_F(SessionParent, IsOfJobsOnThisHostAlone) {
  EXPECT_EQ(sessions_of({.ranks = 2, .command = {"train"}}), "/tmp");
  EXPECT_EQ(sessions_of({.ranks = 2, .hosts = hosts_from("a:1,b:1"), .command = {"train"}}), "");
  EXPECT_EQ(sessions_of({.ranks = 2, .by = LaunchBy::kThreads, .command = {"train"}}), "");
}

TEST_F(SessionParent, IsLeftToWhoHasChosenAnother) {
  for (const char* name : kScheduled) {
    const Variable scheduled(name, "7");
    EXPECT_EQ(sessions_of({.ranks = 2, .command = {"train"}}), "") << name;
  }
  for (const char* name : kSessionsChosen) {
    const Variable chosen(name, "/scratch");
    EXPECT_EQ(sessions_of({.ranks = 2, .command = {"train"}}), "") << name;
    const Variable empty(name, "");
    EXPECT_EQ(sessions_of({.ranks = 2, .command = {"train"}}), "/tmp") << name;
  }
}

TEST_F(SessionParent, LiesInTmpdirWherePathsBelowItFitASocket) {
  const Variable given("TMPDIR", "/var/tmp");
  EXPECT_EQ(session_parent(), "/var/tmp");
  for (const std::string& unfit : {"/" + std::string(60, 'x'), std::string("relative"), std::string()}) {
    const Variable tmpdir("TMPDIR", unfit.c_str());
    EXPECT_EQ(session_parent(), "/tmp") << unfit;
  }
}

// Open MPI refuses the base beside those of other hosts, which its own file may set.
TEST(SessionFolder, IsToldToMpirunInPlaceOfAllOthers) {
  const TempFolder folder;
  const SessionFolder session(folder.path());
  EXPECT_EQ(fs::path(session.path()).parent_path(), folder.path());
  EXPECT_EQ(fs::status(session.path()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(session.environment(), (Assignments{{kBase, session.path()},
                                                {"OMPI_MCA_orte_local_tmpdir_base", ""},
                                                {"OMPI_MCA_orte_remote_tmpdir_base", ""}}));
}

TEST(SessionFolder, GoesWithItsJobHoweverThatEnds) {
  const TempFolder folder;
  for (const std::string end : {"exit 0", "exit 69", "kill -9 $$"}) {
    const TempFolder told;
    const std::string note = (told.path() / "base").string();
    run_job_with_sessions(folder,
                          "mkdir -p $OMPI_MCA_orte_tmpdir_base/ompi.vm.0/pid.7 && "
                          "printf $OMPI_MCA_orte_tmpdir_base > " +
                              note + "; " + end);
    std::string base;
    std::ifstream(note) >> base;
    EXPECT_EQ(fs::path(base).parent_path(), folder.path()) << end;
    EXPECT_EQ(entries_of(folder), std::vector<std::string>{}) << end;
  }
}

TEST(SessionFolder, WithoutOneAJobRunsAllTheSame) {
  const TempFolder folder;
  const std::string missing = (folder.path() / "missing").string();
  const SessionFolder none(missing);
  EXPECT_EQ(none.path(), "");
  EXPECT_TRUE(none.environment().empty());
  const SignalGuard signals;
  const std::string script = "exit ${#OMPI_MCA_orte_tmpdir_base}";
  const Variable unset(kBase, nullptr);
  for (const std::string& sessions : {missing, std::string()})
    EXPECT_EQ(LaunchedJob({.words = {"/bin/sh", "-c", script}, .sessions = sessions}, {.ranks = 1}, signals)
                  .run()
                  .code,
              0);
  EXPECT_EQ(entries_of(folder), std::vector<std::string>{});
}

TEST(SessionFolder, OfALauncherThatIsGoneIsRemovedByTheNext) {
  const TempFolder folder;
  const std::string dead = std::to_string(dead_process());
  const fs::path gone = left_by(dead + "-12", folder);
  const fs::path reused = left_by(std::to_string(::getpid()) + "-12", folder);  // another had that number
  { const SessionFolder next(folder.path()); }
  EXPECT_FALSE(fs::exists(gone));
  EXPECT_FALSE(fs::exists(reused));
  EXPECT_EQ(entries_of(folder), std::vector<std::string>{});
}

TEST(SessionFolder, OfALauncherThatLivesStays) {
  const TempFolder folder;
  const SessionFolder own(folder.path());
  { const SessionFolder next(folder.path()); }
  EXPECT_TRUE(fs::exists(own.path()));
  // One that has just been made is not locked yet.
  const ProcessMark mark = ProcessMark::current();
  const fs::path made = left_by(mark.text().substr(mark.host.size() + 1), folder);
  { const SessionFolder next(folder.path()); }
  EXPECT_TRUE(fs::exists(made));
  // A launcher of another PID namespace looks dead by its number.
  const fs::path held = left_by(std::to_string(dead_process()) + "-12", folder);
  const int lock = ::open(held.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  { const SessionFolder next(folder.path()); }
  EXPECT_TRUE(fs::exists(held));
  ::close(lock);
  { const SessionFolder next(folder.path()); }
  EXPECT_FALSE(fs::exists(held));
}

// While a launcher lives, its folder cannot be locked by others, whatever its number means to them.
TEST(SessionFolder, IsLockedWhileItsLauncherLives) {
  const TempFolder folder;
  const SessionFolder own(folder.path());
  const int other = ::open(own.path().c_str(), O_RDONLY | O_DIRECTORY);
  EXPECT_NE(::flock(other, LOCK_EX | LOCK_NB), 0);
  ::close(other);
}

TEST(SessionFolder, NothingElseIsRemoved) {
  const TempFolder folder, elsewhere;
  const std::string dead = std::to_string(dead_process());
  const fs::path target = elsewhere.file("kept/by_link");
  fs::create_directory_symlink(target.parent_path(), folder.path() / ("vitrail-" + dead + "-12-aB3xYz"));
  left_by(dead + "-12", folder, "short");
  left_by(dead + "-12", folder, "aB.xYz");
  left_by(dead, folder);
  left_by("test", folder);
  left_by("vm-" + dead + "-12", folder);
  folder.file("vitrail-" + dead + "-12-cccccc");
  fs::create_directories(folder.path() / "vitrail-");
  const fs::path others = left_by(::geteuid() == 0 ? dead + "-12" : "others", folder, "dddddd");
  ASSERT_EQ(::chown(others.c_str(), ::geteuid() == 0 ? 65534 : ::geteuid(), static_cast<gid_t>(-1)), 0);
  const size_t before = entries_of(folder).size();
  { const SessionFolder next(folder.path()); }
  EXPECT_EQ(entries_of(folder).size(), before);
  EXPECT_TRUE(fs::exists(target));
}

}  // namespace
}  // namespace vitrail
