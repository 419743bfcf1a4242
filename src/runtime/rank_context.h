// One rank as an object: its device, its threads, its seed. Passed explicitly, so several ranks can live in
// one process; nothing of it is global.
#pragma once

#include <cstdint>

#include "backend/device.h"
#include "backend/kernel.h"
#include "base/thread_pool.h"

namespace vitrail {

struct RankContext {
  explicit RankContext(DeviceInfo info, uint64_t rank_seed = 0)
      : device(std::move(info)), pool(device.threads), seed(rank_seed), hardware(open_device(device)) {}

  // Where its arenas lie: null for the host's own memory.
  MemorySource* memory() const { return hardware->shares_host_memory() ? nullptr : hardware.get(); }
  // What arenas may take; 0: unknown.
  size_t available_bytes() const {
    const size_t usable = hardware->usable_bytes();
    return usable > 0 ? usable : device.memory_bytes;
  }
  Lane lane() { return {pool, device, hardware->stream()}; }

  DeviceInfo device;
  ThreadPool pool;
  uint64_t seed;
  std::unique_ptr<Device> hardware;
};

}  // namespace vitrail
