// One rank as an object: its device, its threads, its seed. Passed explicitly, so several ranks can live in
// one process; nothing of it is global.
#pragma once

#include <cstdint>

#include "backend/device.h"
#include "backend/kernel.h"
#include "base/free_memory.h"
#include "base/thread_pool.h"

namespace vitrail {

struct RankContext {
  explicit RankContext(DeviceInfo info, uint64_t rank_seed = 0)
      : device(std::move(info)), pool(device.threads), seed(rank_seed), hardware(open_device(device)) {}

  // The memory in which its arenas lie; null for the host's own.
  MemorySource* memory() const { return hardware->shares_host_memory() ? nullptr : hardware.get(); }
  // The memory that arenas may still take.
  FreeMemory available() const {
    FreeMemory free = hardware->shares_host_memory()
                          ? free_memory()
                          : FreeMemory{hardware->usable_bytes(), "free on " + device.name};
    const bool smaller = device.memory_bytes > 0 && (free.bytes == 0 || device.memory_bytes < free.bytes);
    return smaller ? FreeMemory{device.memory_bytes, "all that " + device.name + " has"} : free;
  }
  Lane lane() { return {pool, device, hardware->stream()}; }

  DeviceInfo device;
  ThreadPool pool;
  uint64_t seed;
  std::unique_ptr<Device> hardware;
};

}  // namespace vitrail
