// Which Open MPI starts the ranks: the host's, one that came along, or none. Empty files stand for their
// programs, and no library is opened.
#include "launch/launch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "launch/environment.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

namespace fs = std::filesystem;

// A host with an installation of Vitrail, and what opening MPI's libraries gives there.
struct Machine {
  TempFolder folder;
  std::string system_problem, own_problem;
  std::vector<fs::path> asked{};  // for the libraries in these folders

  std::string program(const std::string& name) const {
    std::string file = folder.file(name, "");
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
  std::string system_mpirun() const { return program("usr/bin/mpirun"); }
  std::string own_mpirun() const { return program("opt/vitrail/lib/vitrail/openmpi/bin/mpirun"); }
  fs::path own() const { return folder.path() / "opt/vitrail/lib/vitrail/openmpi"; }

  MpiSearch search(const std::string& program = "opt/vitrail/bin/vitrail") {
    return {.path = "/nowhere:" + (folder.path() / "usr/bin").string(),
            .program = folder.path() / program,
            .report = [this](const fs::path& libraries) {
              asked.push_back(libraries);
              return MpiReport{.problem = libraries.empty() ? system_problem : own_problem, .library = "MPI"};
            }};
  }
};

std::map<std::string, std::string> variables_of(const LaunchPlan& plan) {
  return {plan.environment.begin(), plan.environment.end()};
}

void expect_own(const LaunchPlan& plan, const Machine& host) {
  EXPECT_TRUE(plan.mpi);
  EXPECT_EQ(plan.words[0], (host.own() / "bin/mpirun").string());
  EXPECT_NE(plan.note.find("came along, " + plan.words[0]), std::string::npos) << plan.note;
  EXPECT_EQ(variables_of(plan)["OPAL_PREFIX"], host.own().string());
}

ErrorKind refused(const LaunchRequest& request, Machine& host, const std::string& words) {
  try {
    plan_launch(request, host.search());
  } catch (const Error& error) {
    const std::string text = std::string(error.what()) + "; " + error.hint();
    EXPECT_NE(text.find(words), std::string::npos) << text;
    return error.kind();
  }
  ADD_FAILURE() << "not refused";
  return ErrorKind::kInternal;
}

TEST(PlanLaunch, TheHostsMpirunComesFirst) {
  Machine host;
  const std::string mpirun = host.system_mpirun();
  host.own_mpirun();
  const LaunchPlan plan =
      plan_launch({.ranks = 2, .hosts = hosts_from("a:1,b:1"), .command = {"train"}}, host.search());
  EXPECT_TRUE(plan.mpi);
  EXPECT_EQ(plan.words[0], mpirun);
  EXPECT_EQ(plan.note, "2 ranks, a process each, by " + mpirun);
  EXPECT_EQ(variables_of(plan).count("OPAL_PREFIX"), 0u);
  EXPECT_EQ(variables_of(plan).count("LD_LIBRARY_PATH"), 0u);
  EXPECT_EQ(variables_of(plan)["VITRAIL_RANKS"], "1");
  EXPECT_NE(std::find(plan.words.begin(), plan.words.end(), "a:1,b:1"), plan.words.end());
  EXPECT_EQ(host.asked, std::vector<fs::path>{""});
}

TEST(PlanLaunch, WithoutOneTheMpirunThatCameAlongIsToldWhereItLies) {
  Machine host;
  host.own_mpirun();
  ::setenv("LD_LIBRARY_PATH", "/opt/cuda/lib64", 1);
  const LaunchPlan plan = plan_launch({.ranks = 2, .command = {"train"}}, host.search());
  ::unsetenv("LD_LIBRARY_PATH");
  const LaunchPlan alone = plan_launch({.ranks = 2, .command = {"train"}}, host.search());
  expect_own(plan, host);
  const std::string own = host.own().string();
  auto variables = variables_of(plan);
  EXPECT_EQ(variables["OPAL_PKGLIBDIR"], own + "/lib/openmpi");
  EXPECT_EQ(variables["PMIX_PREFIX"], own);
  EXPECT_EQ(variables["LD_LIBRARY_PATH"], own + "/lib:/opt/cuda/lib64");
  EXPECT_EQ(variables_of(alone)["LD_LIBRARY_PATH"], own + "/lib") << "an empty part is the working folder";
  EXPECT_EQ(variables["VITRAIL_RANKS"], "1");
  EXPECT_EQ(host.asked, (std::vector<fs::path>(2, host.own() / "lib")));
}

TEST(PlanLaunch, AnMpirunWhoseLibrariesCannotBeOpenedGivesWayToIt) {
  Machine host{.system_problem = "libmpi.so.40 is missing"};
  host.system_mpirun();
  EXPECT_FALSE(plan_launch({.ranks = 2, .command = {"train"}}, host.search()).mpi);
  host.own_mpirun();
  expect_own(plan_launch({.ranks = 2, .command = {"train"}}, host.search()), host);
}

TEST(PlanLaunch, WhatCameAlongServesOneHost) {
  Machine host;
  host.own_mpirun();
  EXPECT_EQ(exit_code(refused({.ranks = 2, .hosts = hosts_from("a:1,b:1"), .command = {"train"}}, host,
                              "apt install openmpi-bin, on each of the hosts")),
            69);
}

TEST(PlanLaunch, WithNeitherRanksAreThreadsUnlessProcessesAreNeeded) {
  Machine host;
  const LaunchPlan plan = plan_launch({.ranks = 2, .command = {"train"}}, host.search());
  EXPECT_FALSE(plan.mpi);
  EXPECT_NE(plan.note.find("mpirun is not in PATH; apt install openmpi-bin"), std::string::npos) << plan.note;
  EXPECT_TRUE(plan.environment.empty());
  EXPECT_EQ(exit_code(refused({.ranks = 2, .by = LaunchBy::kMpirun}, host, "mpirun is not in PATH")), 69);
  host.own_problem = "its libraries are of another system";
  host.own_mpirun();
  EXPECT_NE(plan_launch({.ranks = 2, .command = {"train"}}, host.search()).note.find(host.own_problem),
            std::string::npos);
}

TEST(PlanLaunch, AHostfileIsHandedToMpirun) {
  Machine host;
  host.system_mpirun();
  const std::string file = host.folder.file("hosts", "vt1 slots=2\nvt2 slots=2\n");
  const LaunchPlan plan =
      plan_launch({.ranks = 4, .hosts = hosts_from(file), .command = {"train"}}, host.search());
  const auto option = std::find(plan.words.begin(), plan.words.end(), "--hostfile");
  ASSERT_NE(option, plan.words.end());
  EXPECT_EQ(option[1], file);
  EXPECT_EQ(std::count(plan.words.begin(), plan.words.end(), "--host"), 0);
}

TEST(ChooseMpi, NothingIsTakenFromBesideAFolderThatIsNoBin) {
  Machine host;
  host.own_mpirun();
  EXPECT_TRUE(choose_mpi(host.search()).report.came_along);
  const ChosenMpi chosen = choose_mpi(host.search("opt/vitrail/work/vitrail"));
  EXPECT_FALSE(chosen.report.came_along);
  EXPECT_EQ(chosen.report.mpirun, "");
}

}  // namespace
}  // namespace vitrail
