#include "train/world.h"

#include "base/error.h"
#include "base/values.h"

namespace vitrail {

namespace {

// The first of these variables that holds a number.
int number_in(const Variables& variables, std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    const char* text = variables ? variables(name) : nullptr;
    const auto number = text ? parse_integer(text) : std::nullopt;
    if (number && *number >= 0 && *number < 1 << 20) return static_cast<int>(*number);
  }
  return otherwise;
}

}  // namespace

World open_world(const WorldRequest& request) {
  const Variables& variables = request.variables;
  if (variables && started_by_srun_without_pmix(variables))
    throw Error(ErrorKind::kUsage, "srun has started several tasks without PMIx: each would be alone",
                "srun --mpi=pmix ...");
  World world;
  if (variables && (started_by_mpirun(variables) || started_by_srun(variables))) {
    VT_REQUIRE(request.ranks <= 1, ErrorKind::kUsage,
               "--ranks %d under mpirun: a process is one rank there; leave --ranks out", request.ranks);
    world.ranks.push_back(mpi_world());
    world.size = world.ranks[0]->size();
    world.transport = "mpi";
    world.local_size = number_in(variables, {"OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"}, world.size);
    world.local_rank = number_in(variables, {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}, 0);
    return world;
  }
  world.size = world.local_size = request.ranks;
  if (request.ranks > 1) {
    world.ranks = thread_communicators(request.ranks);
    world.transport = "threads";
  } else {
    world.ranks.push_back(self_communicator());
  }
  return world;
}

}  // namespace vitrail
