// Rank threads on GPUs: the one they share, or one each where there are several.
#pragma once

#include <cstdlib>

#include "backend/cuda/kernels.h"
#include "mesh_run.h"
#include "train/device_transport.h"

namespace vitrail {

inline DeviceInfo gpu_of(int rank) {
  return cuda_device(rank % static_cast<int>(cuda_report().gpus.size()));
}

inline MeshDevices on_gpu(MeshTransport transport) {
  return {.backend = &cuda_backend(),
          .info = gpu_of(0),
          .open = [] { return open_cuda_device(gpu_of(0)); },
          .join =
              [transport](RankContext& rank, MeshCommunicators& ranks) {
                join_devices(rank, ranks, transport, [](const char* name) { return std::getenv(name); });
              }};
}

}  // namespace vitrail
