// The ranks of this process and how they reach the others: alone, threads of this process, or one process of an
// MPI job. Knows neither command lines nor the environment: both are handed in.
#pragma once

#include "dist/mpi_world.h"
#include "train/rank_threads.h"

namespace vitrail {

struct WorldRequest {
  int ranks = 1;        // as threads of this process
  Variables variables;  // of the environment, in which mpirun and srun say that this process is a rank
};

// Who this process is in a run.
struct World {
  std::vector<std::unique_ptr<Communicator>> ranks;  // those of this process
  int size = 1;                                      // of all processes
  int local_size = 1, local_rank = 0;  // ranks on this host, and the number of this process's first among them
  const char* transport = "self";
};

// Throws Error(kUsage) when srun has started several tasks without PMIx, or threads are asked for under MPI;
// Error(kDevice) when MPI is needed and absent.
World open_world(const WorldRequest& request);

}  // namespace vitrail
