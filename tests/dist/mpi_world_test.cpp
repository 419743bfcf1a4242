// How a process knows that MPI started it, and what is said where MPI cannot be used.
#include "dist/mpi_world.h"

#include <gtest/gtest.h>

#include <map>

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
  const std::string problem = mpi_report().problem;
  if (problem.empty()) GTEST_SKIP() << "MPI is here";
  EXPECT_NE(problem.find("apt install openmpi-bin libopenmpi-dev"), std::string::npos) << problem;
}
}  // namespace

}  // namespace vitrail
