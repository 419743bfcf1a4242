// One rank as an object: its device, its threads, its seed. Passed explicitly, so several ranks can live in
// one process; nothing of it is global.
#pragma once

#include <cstdint>

#include "backend/device_info.h"
#include "base/thread_pool.h"

namespace vitrail {

struct RankContext {
  explicit RankContext(DeviceInfo info, uint64_t rank_seed = 0)
      : device(std::move(info)), pool(device.threads), seed(rank_seed) {}

  DeviceInfo device;
  ThreadPool pool;
  uint64_t seed;
};

}  // namespace vitrail
