// Decides how values travel between the devices of a run's ranks: by NCCL where every rank has a GPU and the
// library is there, else staged through the host. All ranks come to one answer. Reads no environment.
#pragma once

#include <string>

#include "dist/mpi_world.h"
#include "runtime/rank_context.h"
#include "train/mesh_config.h"

namespace vitrail {

// Holds what a rank brings to the decision.
struct DeviceSeat {
  std::string gpu;      // host and device; empty: the host reads its memory, and no device moves values
  std::string problem;  // why NCCL cannot be used
  std::string version;  // of NCCL
  bool shares_gpus = false;
  std::string process = {};  // that the rank is a thread of
  int queues = 8;            // of a GPU for the streams of one process
};

struct TransportDecision {
  bool nccl = false;
  std::string note = {};  // for the user, where it is not what could be expected
};

// Throws Error(kDevice) with the first rank that lacks something when NCCL is asked for by name.
TransportDecision decide_transport(const std::vector<DeviceSeat>& seats, MeshTransport wanted);

// Returns whether ranks may share a GPU, as NCCL's own variable says.
bool ranks_share_gpus(const Variables& variables);

// Every rank of the run calls it before its first program. Returns the decision's note.
std::string join_devices(RankContext& rank, MeshCommunicators& ranks, MeshTransport wanted,
                         const Variables& variables);

}  // namespace vitrail
