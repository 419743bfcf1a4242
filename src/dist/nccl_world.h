// NCCL as seen by a program that runs without it: why it cannot be used, what doctor shows of it, and how the
// devices of ranks exchange values by it. The library is opened when it is first asked for. Reads no
// environment: the program's surface hands it a way to look a variable up.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "dist/device_communicator.h"
#include "dist/mpi_world.h"

namespace vitrail {

// The variable that names the library's file; without it the system's libnccl.so.2 is taken.
inline constexpr const char* kNcclVariable = "VITRAIL_NCCL";
// NCCL's own variable: set to 1, several ranks may share a GPU, from version 2.30 on.
inline constexpr const char* kSharedGpuVariable = "NCCL_MULTI_RANK_GPU_ENABLE";

struct NcclReport {
  std::string problem, version, path;
  bool shares_gpus = false;  // several ranks may be on one GPU
};
NcclReport nccl_report(const Variables& variables);

struct NcclSettings {
  Variables variables;
  std::function<void()> use_device = [] {};  // makes the rank's device current in the calling thread
  double deadline_s = 120;                   // for the ranks to meet, and for NCCL to answer where it blocks
};

// Throws Error(kDevice), with the line that brings NCCL, where nccl_report() names a problem. A thread of the
// transport's own watches its communicators while they live: what NCCL reports later, and an abort of their
// groups by any thread, ends what is enqueued.
std::unique_ptr<DeviceTransport> nccl_transport(NcclSettings settings);

}  // namespace vitrail
