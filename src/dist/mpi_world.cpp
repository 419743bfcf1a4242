#include "dist/mpi_world.h"

#include <cstdlib>

#include "base/error.h"
#include "base/plugin_library.h"

namespace vitrail {

namespace {

Plugin<mpi::Api> open_mpi() {
  return open_plugin<mpi::Api>({.file = "libvitrail_mpi.so",
                                .symbol = mpi::kApiSymbol,
                                .brings = "MPI",
                                .absent = "; apt install openmpi-bin libopenmpi-dev, then build again",
                                .broken = "apt install openmpi-bin libopenmpi-dev"},
                               VITRAIL_MPI_API);
}

const Plugin<mpi::Api>& plugin() {
  static const Plugin<mpi::Api> opened = open_mpi();
  return opened;
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

MpiReport mpi_report(const std::filesystem::path& libraries) {
  if (!libraries.empty()) open_libraries(libraries);
  const Plugin<mpi::Api> found = libraries.empty() ? plugin() : open_mpi();
  return {.problem = found.problem,
          .library = found.problem.empty() ? found.api->library() : "",
          .plugin = found.path};
}

std::unique_ptr<Communicator> mpi_world() {
  if (!plugin().problem.empty())
    throw Error(ErrorKind::kDevice, "MPI cannot be used: " + plugin().problem,
                "ranks as threads of one process need no MPI; vitrail doctor shows what this machine can do");
  return plugin().api->world();
}

HostPlace mpi_host_place() {
  return plugin().api->host_place();
}

}  // namespace vitrail
