// The ranks of a run that live in this process: each with its own communicators and device, one thread a rank.
// A rank that fails ends the others, and its error is the run's.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "dist/communicator.h"
#include "runtime/rank_context.h"
#include "train/mesh_config.h"

namespace vitrail {

struct LocalRanks {
  std::vector<std::unique_ptr<Communicator>> worlds;  // one a rank of this process; their first is on this thread
  MeshConfig mesh;                                    // resolved for the size of the world
  std::function<DeviceInfo(int local)> device;        // of each rank of this process, counted from 0
  uint64_t seed = 0;
  int sharing = 1;  // ranks on this host, those of other processes included
};

// Calls `body` once a rank and returns when all have ended. Rethrows the error of the rank that failed first,
// with its number.
void run_ranks(LocalRanks ranks, const std::function<void(RankContext&)>& body);

}  // namespace vitrail
