// The words and variables with which ranks are started, and the programs that are run for what they tell.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include "base/stop.h"
#include "dist/liveness/watch.h"
#include "io/find_model.h"
#include "launch/child_process.h"
#include "launch/environment.h"
#include "launch/launch_plan.h"
#include "launch/launched_job.h"
#include "launch/rank_session.h"
#include "temp_folder.h"
#include "thrown.h"
#include "train/train_config.h"
#include "variable.h"

namespace vitrail {
namespace {

MpiSearch search_in(const TempFolder& folder) {
  const std::string file = folder.file("bin/mpirun", "");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return {.path = (folder.path() / "bin").string(),
          .program = "/nowhere/vitrail",
          .report = [](const std::filesystem::path&) { return MpiReport{.library = "MPI"}; }};
}

TEST(LaunchWords, OfMpirun) {
  const TempFolder folder;
  const Variable own("VITRAIL_ONE", "1"), watch(kWatchVariable, "w");
  LaunchRequest request{.ranks = 3, .command = {"train", "--out", "x"}};
  request.hosts = hosts_from("a:2,b:1");
  const LaunchPlan plan = plan_launch(request, search_in(folder));
  const std::string mpirun = (folder.path() / "bin/mpirun").string();
  std::vector<std::string> words = plan.words;
  // Other variables of ours are handed on wherever they come from.
  const auto named = std::find(words.begin(), words.end(), "VITRAIL_ONE");
  ASSERT_NE(named, words.end());
  EXPECT_EQ(named[-1], "-x");
  words.erase(named - 1, named + 1);
  std::erase_if(
      words, [](const std::string& word) { return word.starts_with("VITRAIL_") && word != kWatchVariable; });
  ASSERT_GE(words.size(), 14u);
  EXPECT_EQ(std::vector<std::string>(words.begin(), words.begin() + 10),
            (std::vector<std::string>{mpirun, "-n", "3", "--bind-to", "none", "--oversubscribe", "--host",
                                      "a:2,b:1", "-x", kWatchVariable}));
  EXPECT_EQ(std::count(words.begin(), words.end(), kWatchVariable), 1) << "once";
  EXPECT_EQ(std::vector<std::string>(words.end() - 4, words.end()),
            (std::vector<std::string>{this_program().string(), "train", "--out", "x"}));
  std::map<std::string, std::string> variables(plan.environment.begin(), plan.environment.end());
  EXPECT_EQ(variables["VITRAIL_RANKS"], "1");
  const bool root = ::geteuid() == 0;
  EXPECT_EQ(variables.count("OMPI_ALLOW_RUN_AS_ROOT"), root ? 1u : 0u);
  EXPECT_EQ(variables.count("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), root ? 1u : 0u);
  EXPECT_EQ(plan.note, "3 ranks, a process each, by " + mpirun);
}

TEST(LaunchWords, OfThreads) {
  const LaunchPlan plan = plan_launch({.ranks = 1, .by = LaunchBy::kThreads, .command = {"train"}});
  EXPECT_FALSE(plan.mpi);
  EXPECT_EQ(plan.words, (std::vector<std::string>{this_program().string(), "train", "--ranks", "1"}));
  EXPECT_EQ(plan.note, "1 rank as threads of one process");
  EXPECT_TRUE(plan.environment.empty());
}

TEST(LaunchWords, AnMpiThatCameAlongIsToldAllItsPlaces) {
  const TempFolder folder;
  const Variable path("LD_LIBRARY_PATH", "");
  std::filesystem::permissions(folder.file("v/lib/vitrail/openmpi/bin/mpirun", ""),
                               std::filesystem::perms::owner_all);
  const ChosenMpi mpi = choose_mpi({.path = "",
                                    .program = folder.path() / "v/bin/vitrail",
                                    .report = [](const std::filesystem::path&) { return MpiReport{}; }});
  const std::string own = (folder.path() / "v/lib/vitrail/openmpi").string();
  EXPECT_EQ(mpi.environment, (Assignments{{"OPAL_PREFIX", own},
                                          {"OPAL_LIBDIR", own + "/lib"},
                                          {"OPAL_PKGLIBDIR", own + "/lib/openmpi"},
                                          {"OPAL_PKGDATADIR", own + "/share/openmpi"},
                                          {"OPAL_SYSCONFDIR", own + "/etc"},
                                          {"PMIX_PREFIX", own},
                                          {"PMIX_LIBDIR", own + "/lib"},
                                          {"PMIX_DATADIR", own + "/share"},
                                          {"PMIX_SYSCONFDIR", own + "/etc"},
                                          {"HWLOC_PLUGINS_PATH", own + "/lib/hwloc"},
                                          {"LD_LIBRARY_PATH", own + "/lib"}}));
}

TEST(ThreadsOfRank, OneForAllOrOneEach) {
  EXPECT_EQ(threads_of_rank("4", 2, 3), 4);
  EXPECT_EQ(threads_of_rank("4,5,6", 2, 3), 6);
  EXPECT_EQ(threads_of_rank("0", 0, 1), 0);
  EXPECT_EQ(threads_of_rank("4096", 0, 1), 4096);
  const std::string remedy =
      " | a number of threads, 0 for every core, or one for each rank, as --threads 4,4,2,1";
  EXPECT_EQ(thrown_by([] { threads_of_rank("4,5", 0, 3); }),
            "usage: --threads \"4,5\" names 2 ranks; there are 3" + remedy);
  for (const char* bad : {"4097", "-1", "x", "", "1,2,-3"})
    EXPECT_EQ(thrown_by([&] { threads_of_rank(bad, 2, 3); }),
              std::string("usage: --threads \"") + bad + "\" holds no number from 0 to 4096" + remedy)
        << bad;
}

TEST(HostLimits, AreMetExactly) {
  EXPECT_EQ(hosts_from("a:65536").slots(), 65536);
  EXPECT_EQ(thrown_by([] { hosts_from("a:65537"); }),
            "usage: --hosts has \"65537\" slots; expected a number from 1 to 65536");
  for (const char* ending : {".txt", ".hosts", ".hostfile", ".machines", ".list", ".conf", ".cfg"})
    EXPECT_TRUE(
        thrown_by([&] { hosts_from(std::string("none") + ending); }).starts_with("usage: --hosts \"none"))
        << ending;
  EXPECT_EQ(hosts_from("none.org").all.size(), 1u);
  const TempFolder folder;
  EXPECT_EQ(hosts_from(folder.file("h", "a max-slots=9 slots=3")).slots(), 3);
  EXPECT_EQ(thrown_by([&] { hosts_from(folder.file("h", "a slots=1 max_slots=0")); }).find("usage: "), 0u);
}

TEST(SilentHosts, ManagersAndAgents) {
  const Variable agent("OMPI_MCA_plm_rsh_agent", "/nowhere/agent");
  for (const char* job : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}) {
    const Variable managed(job, "1");
    EXPECT_TRUE(silent_hosts(hosts_from("a"), 5).empty()) << job;
  }
  // What is called ssh must not ask, and waits no longer than we do; more words come behind.
  const TempFolder folder;
  const std::string file = folder.file(
      "ssh", "#!/bin/sh\n[ \"$*\" = \"-q -o BatchMode=yes -o ConnectTimeout=7 -v -w far true\" ]\n");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const Variable ssh("OMPI_MCA_plm_rsh_agent", (file + " -q").c_str()),
      more("OMPI_MCA_plm_rsh_args", "-v -w");
  EXPECT_TRUE(silent_hosts(hosts_from("far"), 7.5).empty());
  EXPECT_EQ(silent_hosts(hosts_from("other"), 7.5), std::vector<std::string>{"other"});
}

TEST(RunProgram, TellsCodeOutputAndSignal) {
  const auto go_on = [] { return true; };
  const ProgramEnd end =
      run_program({"/bin/sh", "-c", "cat; echo out $KEY; echo err >&2; exit 3"}, {{"KEY", "value"}}, go_on);
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.out, "out value\n") << "its input is empty";
  EXPECT_EQ(end.err, "err\n");
  EXPECT_EQ(run_program({"/bin/sh", "-c", "kill -9 $$"}, {}, go_on).code, 137);
  EXPECT_EQ(run_program({"/nowhere/program"}, {}, go_on).code, 127);
  EXPECT_EQ(run_program({"/bin/sh", "-c", "exec sleep 60"}, {}, [] { return false; }).code, 143);
  int asked = 0;  // the shell has its trap by then
  const std::string script = "trap 'exit 5' TERM; while :; do sleep 0.05; done";
  EXPECT_EQ(run_program({"/bin/sh", "-c", script}, {}, [&] { return ++asked < 10; }).code, 5);
}

// A process that was doubled a moment ago still has the handlers of its parent.
TEST(RunProgram, ASignalThatComesAtOnceIsNotLost) {
  const SignalGuard signals;
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(run_program({"/bin/sleep", "60"}, {}, [] { return false; }).code, 143);
  EXPECT_FALSE(signals.wanted()) << "it was the program's";
}

TEST(ChildProcess, EndsWithItsOwner) {
  pid_t pid = 0;
  {
    ChildProcess child({"/bin/sleep", "60"}, {});
    EXPECT_FALSE(child.status());
    child.send(SIGTERM);
    for (int i = 0; i < 100 && !child.status(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(child.status());
    EXPECT_EQ(WTERMSIG(*child.status()), SIGTERM);
    child.send(SIGKILL);  // nobody
  }
  EXPECT_FALSE(kill_inherited(::getpid())) << "none of ours";
  pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_TRUE(kill_inherited(pid));
  EXPECT_FALSE(kill_inherited(pid)) << "it is gone";
}

// Another user may start no process at all, which root cannot be kept from.
TEST(ChildProcess, ThatCannotBeStartedIsAnError) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit none{0, 0};
    const bool limited = ::setrlimit(RLIMIT_NPROC, &none) == 0 && (::geteuid() != 0 || ::setuid(65534) == 0);
    const std::string told = thrown_by([] { ChildProcess({"/bin/true"}, {}); });
    ::_exit(!limited                                                                        ? 3
            : told == "device: no process can be started: Resource temporarily unavailable" ? 0
                                                                                            : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "the user cannot be changed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(OutputOf, AFailureIsNamed) {
  EXPECT_EQ(thrown_by([] { output_of({"/bin/false"}); }), "device: /bin/false failed (status 256)");
  EXPECT_EQ(thrown_by([] { own_program("no-such-program", "make it"); }),
            "device: no-such-program is not beside this program | make it");
}

TEST(Environment, PlacesOfTheUser) {
  const Variable home("HOME", "/home/u");
  {
    const Variable config("XDG_CONFIG_HOME", "/etc/u");
    EXPECT_EQ(config_home(), "/etc/u");
  }
  for (const char* none : {"", static_cast<const char*>(nullptr)}) {
    const Variable config("XDG_CONFIG_HOME", none);
    EXPECT_EQ(config_home(), "/home/u/.config");
    const Variable nobody("HOME", none);
    EXPECT_EQ(config_home(), "");
  }
  const Variable named("VITRAIL_ONE", "a=b");
  const std::vector<std::string> names = environment_names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "VITRAIL_ONE"), 1);
  const char* queues = "CUDA_DEVICE_MAX_CONNECTIONS";
  const Variable none(queues, nullptr);
  share_gpu_queues(1);
  EXPECT_EQ(environment_variable(queues), nullptr);
  share_gpu_queues(2);
  EXPECT_STREQ(environment_variable(queues), "32");
  ::setenv(queues, "8", 1);
  share_gpu_queues(2);
  EXPECT_STREQ(environment_variable(queues), "8") << "what the user says stays";
}

TEST(RanksLeft, OptionsKeepTheThreadsOfThoseThatStay) {
  TrainConfig config;
  config.data.train = "synthetic:3x16x16x4x64";
  config.train.batch = 12;
  std::string threads = "4,3,2";
  std::vector<int> left = {0, 2};
  const std::vector<std::string> words = options_for_fewer(config, 3, threads, left);
  EXPECT_EQ(left, (std::vector<int>{0, 2}));
  EXPECT_EQ(threads, "4,2");
  ASSERT_GE(words.size(), 2u);
  EXPECT_EQ(std::vector<std::string>(words.end() - 2, words.end()),
            (std::vector<std::string>{"--threads", "4,2"}));
  for (size_t i = 0; i + 2 < words.size(); i += 2) EXPECT_EQ(words[i], "--set");
  threads = "4";
  const std::vector<std::string> plain = options_for_fewer(config, 3, threads, left);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), "--threads"), 0);
  EXPECT_EQ(threads, "4");
  std::vector<int> nobody;
  EXPECT_TRUE(options_for_fewer(config, 3, threads, nobody).empty());
  config.mesh.tp = 2;  // pairs share the model: of three one is left over
  std::vector<int> three = {0, 1, 3};
  options_for_fewer(config, 4, threads, three);
  EXPECT_EQ(three, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace vitrail
