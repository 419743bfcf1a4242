// The ranks of this process and how they reach the others: alone, threads of this process, or one process of
// an MPI job; and the threads on which they run. Knows neither command lines nor the environment: both are
// handed in.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "dist/liveness/heartbeat.h"
#include "dist/mpi_world.h"
#include "plan/devices.h"
#include "runtime/rank_context.h"
#include "train/agreement.h"
#include "train/mesh_config.h"
#include "train/rank_seat.h"

namespace vitrail {

struct WorldRequest {
  int ranks = 1;        // as threads of this process
  Variables variables;  // of the environment, in which mpirun and srun say that this process is a rank
};

// Says who this process is in a run.
struct World {
  std::vector<std::unique_ptr<Communicator>> ranks;  // those of this process
  int size = 1;                                      // of all processes
  int local_size = 1,
      local_rank = 0;   // ranks on this host, and the number of this process's first among them
  int overlapping = 1;  // of those, the ranks that may run on a core of this process's
  const char* transport = "self";

  HostRank seat() const { return {local_rank, local_size, overlapping}; }  // of its first rank
};

// Throws Error(kUsage) when srun has started several tasks without PMIx, or threads are asked for under MPI;
// Error(kDevice) when MPI is needed and absent.
World open_world(const WorldRequest& request);

// Returns "4 ranks (threads): dp=2 tp=2, all on this host".
std::string world_text(const World& world, const MeshConfig& mesh);
// Returns a row for every rank of the run, gathered from all processes, with the cores that it is bound to.
std::vector<RankSeat> seats_of(World& world, const MeshConfig& mesh,
                               const std::function<DeviceInfo(int local)>& device);

// Throws Error(kConfig) when ranks of other processes run another program, or were given another config.
void require_same_run(World& world, const Json& config, const std::string& program);

// The ranks that live in this process, each with its own communicators and device.
struct LocalRanks {
  std::vector<std::unique_ptr<Communicator>>
      worlds;                                   // one a rank of this process; their first is on this thread
  MeshConfig mesh;                              // resolved for the size of the world
  std::function<DeviceInfo(int local)> device;  // of each rank of this process, counted from 0
  uint64_t seed = 0;
  int sharing = 1;                           // ranks on this host, those of other processes included
  int overlapping = 0;                       // of them, those on the same cores; 0: all
  liveness::Heartbeat* heartbeat = nullptr;  // tells others how they fare; null: nobody watches
  Variables variables = {};                  // of the environment, in which NCCL's file may be named
  // Called on the first rank with a line on how values travel between devices.
  std::function<void(const std::string&)> on_note = {};
};

// Calls `body` once a rank and returns when all have ended. Rethrows the error of the rank that failed first,
// with its number.
void run_ranks(LocalRanks ranks, const std::function<void(RankContext&)>& body);

}  // namespace vitrail
