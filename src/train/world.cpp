#include "train/world.h"

#include "base/error.h"

namespace vitrail {

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
    const HostPlace place = mpi_host_place();
    world.local_size = place.size, world.local_rank = place.rank;
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
