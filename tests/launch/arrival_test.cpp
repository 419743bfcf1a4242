// Ranks that wait for others of their job: what a launcher tells of it, who is missed, and that the wait
// ends.
#include "launch/arrival.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <map>

#include "temp_folder.h"

namespace vitrail {
namespace {

using Given = std::map<std::string, std::string>;

std::optional<JobPlace> place_by(const Given& given) {
  return job_place([&](const char* name) -> const char* {
    const auto found = given.find(name);
    return found == given.end() ? nullptr : found->second.c_str();
  });
}

TEST(Arrival, ALauncherTellsTheRanksPlace) {
  const auto mpirun = place_by({{"OMPI_COMM_WORLD_RANK", "2"},
                                {"OMPI_COMM_WORLD_SIZE", "4"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                                {"PMIX_NAMESPACE", "77"}});
  ASSERT_TRUE(mpirun);
  EXPECT_EQ(mpirun->job, "77");
  EXPECT_EQ(mpirun->rank, 2);
  EXPECT_EQ(mpirun->size, 4);
  EXPECT_EQ(mpirun->here, 3);
  Given slurm = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "s"}};
  EXPECT_FALSE(place_by(slurm)) << "how many tasks there are is not told";
  slurm["SLURM_STEP_NUM_TASKS"] = "2", slurm["SLURM_STEP_NUM_NODES"] = "2";
  ASSERT_TRUE(place_by(slurm));
  EXPECT_EQ(place_by(slurm)->rank, 1);
  EXPECT_EQ(place_by(slurm)->here, 0) << "two nodes share the tasks somehow";
  slurm["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(place_by(slurm)->here, 2);
}

TEST(Arrival, OneRankWaitsForNobody) {
  EXPECT_FALSE(place_by({}));
  EXPECT_FALSE(place_by({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  EXPECT_FALSE(place_by({{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "2"}}));
  EXPECT_FALSE(place_by({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "-2"}}));
}

TEST(Arrival, SaysWhoNeverCame) {
  const JobPlace one_host{"j", 1, 4, 4};
  EXPECT_EQ(absent_text(one_host, {1, 3}, 8, "vt1"), "ranks 0, 2 of 4 never came within 8 s, says rank 1");
  EXPECT_EQ(absent_text(one_host, {0, 1, 2}, 8, "vt1"), "rank 3 of 4 never came within 8 s, says rank 1");
  EXPECT_EQ(absent_text(one_host, {}, 8, "vt1"), "not all of 4 ranks came within 8 s, says rank 1");
  EXPECT_EQ(absent_text(one_host, {0, 1, 2, 3}, 8, "vt1"),
            "all 4 ranks came, and MPI did not connect them within 8 s, says rank 1");
  EXPECT_EQ(absent_text({"j", 1, 4, 2}, {1}, 120, "vt1"),
            "not all of 4 ranks came within 120 s, says rank 1: on vt1 rank 1 did, of 2 there");
  EXPECT_EQ(absent_text({"j", 1, 4, 0}, {0, 1}, 8, "vt1"),
            "not all of 4 ranks came within 8 s, says rank 1: on vt1 ranks 0, 1 did");
}

TEST(HeldName, IsThatOfOneAtATime) {
  const std::string name = "vitrail-test-" + std::to_string(::getpid());
  {
    const HeldName first(name), second(name), other(name + "-other");
    EXPECT_TRUE(first.held() && other.held());
    EXPECT_TRUE(second.taken() && !second.held() && !first.taken());
  }
  EXPECT_TRUE(HeldName(name).held()) << "given back";
  EXPECT_FALSE(HeldName("").held() || HeldName("").taken());
}

// Starts a rank that waits for so long and then ends with code 5, if it still can.
pid_t waiting_rank(const JobPlace& place, double seconds, double lives, const std::string& errors) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::dup2(::open(errors.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), STDERR_FILENO);
  const SignalGuard signals;
  Arrival arrival(place, seconds, signals);
  ::usleep(static_cast<useconds_t>(lives * 1e6));
  arrival.complete();
  ::_exit(5);
}

int code_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Two of three came: each ends by itself, and one of them says who is absent.
TEST(Arrival, EndsAWaitInVain) {
  const TempFolder folder;
  const std::string errors = (folder.path() / "errors").string(), job = std::to_string(::getpid());
  const pid_t first = waiting_rank({job, 0, 3, 3}, 1, 20, errors),
              second = waiting_rank({job, 2, 3, 3}, 1, 20, errors);
  EXPECT_EQ(code_of(first), 69);
  EXPECT_EQ(code_of(second), 69);
  std::ifstream file(errors);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string told = "error: rank 1 of 3 never came within 1 s, says rank ";
  EXPECT_TRUE(text == told + "0\n" || text == told + "2\n") << text;
}

TEST(Arrival, IsOverWhenAllHaveCome) {
  const TempFolder folder;
  const std::string errors = (folder.path() / "errors").string();
  EXPECT_EQ(code_of(waiting_rank({std::to_string(::getpid()), 0, 2, 2}, 20, 0.1, errors)), 5);
  EXPECT_EQ(std::filesystem::file_size(errors), 0u);
}

}  // namespace
}  // namespace vitrail
