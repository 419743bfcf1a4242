#include "dist/mpi_world.h"

#include <cstdlib>

#include "base/error.h"
#include "base/plugin_library.h"
#include "dist/mpi/plugin.h"

namespace vitrail {

namespace {

constexpr const char* kLibrary = "libvitrail_mpi.so";
constexpr const char* kInstall = "apt install openmpi-bin libopenmpi-dev";

struct Plugin {
  const mpi::Api* api = nullptr;
  std::string problem;

  Plugin() {
    const PluginLibrary library = open_plugin(kLibrary, mpi::kApiSymbol);
    if (library.path.empty()) {
      problem = strf("%s is not beside the program: this build has no MPI; %s, then build again", kLibrary,
                     kInstall);
    } else if (!library.problem.empty()) {
      problem = strf("%s cannot be opened: %s; %s", library.path.c_str(), library.problem.c_str(), kInstall);
    } else {
      const auto get = reinterpret_cast<mpi::GetApi>(library.symbol);
      api = get ? get() : nullptr;
      if (!api || api->version != VITRAIL_MPI_API)
        problem = library.path + " belongs to another build of Vitrail";
    }
  }
};

const Plugin& plugin() {
  static const Plugin found;
  return found;
}

}  // namespace

bool started_by_mpirun(const Variables& variables) {
  return variables("OMPI_COMM_WORLD_RANK") != nullptr;
}

bool started_by_srun(const Variables& variables) {
  return variables("SLURM_STEP_ID") && variables("SLURM_PROCID") && variables("PMIX_RANK") &&
         !started_by_mpirun(variables);
}

bool started_by_srun_without_pmix(const Variables& variables) {
  const char* tasks = variables("SLURM_STEP_NUM_TASKS");
  return variables("SLURM_STEP_ID") && variables("SLURM_PROCID") && tasks && std::atoi(tasks) > 1 &&
         !variables("PMIX_RANK") && !started_by_mpirun(variables);
}

std::string mpi_problem() {
  return plugin().problem;
}

std::unique_ptr<Communicator> mpi_world() {
  if (!plugin().problem.empty())
    throw Error(ErrorKind::kDevice, "MPI cannot be used: " + plugin().problem,
                "ranks as threads of one process need no MPI; vitrail doctor shows what this machine can do");
  return plugin().api->world();
}

}  // namespace vitrail
