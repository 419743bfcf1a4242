// How a process knows that MPI started it, and what is said where MPI cannot be used.
#include "dist/mpi_world.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "base/json_text.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {

namespace {
using Names = std::map<std::string, std::string>;

Variables of(const Names& names) {
  return [names](const char* name) {
    const auto found = names.find(name);
    return found == names.end() ? nullptr : found->second.c_str();
  };
}

TEST(MpiWorld, KnowsWhoStartedTheProcess) {
  const Names mpirun = {{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}};
  const Names slurm = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  const Names batch = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}};
  Names pmix = slurm, alone = slurm, both = slurm;
  pmix["PMIX_RANK"] = "1";
  alone["SLURM_STEP_NUM_TASKS"] = "1";
  both.insert(mpirun.begin(), mpirun.end());
  const auto told = [](const Names& names) {
    return std::vector<bool>{started_by_mpirun(of(names)), started_by_srun(of(names)),
                             started_by_srun_without_pmix(of(names))};
  };
  EXPECT_EQ(told({}), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(told(mpirun), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(told(pmix), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(told(slurm), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(told(alone), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(told(batch), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(told(both), (std::vector<bool>{true, false, false}));
}

TEST(MpiWorld, AProblemNamesWhatBringsMpi) {
  const MpiReport report = mpi_report();
  if (report.problem.empty()) GTEST_SKIP() << "MPI is here";
  EXPECT_NE(report.problem.find("apt install openmpi-bin libopenmpi-dev"), std::string::npos)
      << report.problem;
  EXPECT_EQ(report.library, "");
  EXPECT_EQ(
      thrown_by([] { mpi_world(); }),
      "device: MPI cannot be used: " + report.problem +
          " | ranks as threads of one process need no MPI; vitrail doctor shows what this machine can do");
}

// The plugin lies beside the program: a copy of the program elsewhere has none.
TEST(MpiWorld, WithoutItsPluginMpiCannotBeUsed) {
  const TempFolder elsewhere;
  const std::string program = (elsewhere.path() / "program").string(),
                    report = (elsewhere.path() / "report.json").string();
  std::filesystem::copy_file(std::filesystem::read_symlink("/proc/self/exe"), program);
  const std::string command = program + " --gtest_filter=MpiWorld.AProblemNamesWhatBringsMpi " +
                              "--gtest_output=json:" + report + " > " + program + ".txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(program + ".txt", 1 << 20);
  const Json ran = parse_json(read_file(report, 1 << 20), report);
  EXPECT_EQ(ran["testsuites"][0]["testsuite"][0].at("result"), "COMPLETED") << "it was not skipped";
}
}  // namespace

}  // namespace vitrail
