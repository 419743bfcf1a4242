// One rank as an object: its device, its threads, its seed, and the way to its partners. Passed explicitly,
// so several ranks can live in one process; nothing of it is global.
#pragma once

#include <cstdint>

#include "backend/device.h"
#include "backend/kernel.h"
#include "base/free_memory.h"
#include "base/thread_pool.h"
#include "dist/mesh_communicators.h"
#include "dist/pulse.h"

namespace vitrail {

struct RankContext {
  explicit RankContext(const DeviceInfo& info, uint64_t rank_seed = 0)
      : RankContext(info, open_device(info), rank_seed) {}
  RankContext(DeviceInfo info, std::unique_ptr<Device> opened, uint64_t rank_seed = 0)
      : device(std::move(info)), pool(device.threads), seed(rank_seed), hardware(std::move(opened)) {}

  // The memory in which its arenas lie; they must be freed before the rank.
  MemorySource* memory() const { return hardware.get(); }
  // The bytes that buffers of a category hold of its device's memory and of the host memory beside it.
  size_t allocated(Category category) const {
    const MemorySource* beside = hardware->host_memory();
    return hardware->allocated(category) + (beside == hardware.get() ? 0 : beside->allocated(category));
  }
  // The memory that arenas may still take.
  FreeMemory available() const {
    FreeMemory free = hardware->shares_host_memory()
                          ? free_memory()
                          : FreeMemory{hardware->usable_bytes(), "free on " + device.name};
    if (hardware->shares_host_memory()) free = free.shared_by(sharing);
    const bool smaller = device.memory_bytes > 0 && (free.bytes == 0 || device.memory_bytes < free.bytes);
    return smaller ? FreeMemory{device.memory_bytes, "all that " + device.name + " has"} : free;
  }
  // The stream on which values of its device travel, beside that of its programs.
  Stream& exchange_stream() {
    if (!exchanges) exchanges = hardware->create_urgent_stream();
    return *exchanges;
  }
  // The stream on which values of the host's memory come to its device.
  Stream& upload_stream() {
    if (!uploads) uploads = hardware->create_stream();
    return *uploads;
  }
  LaunchContext launch_context() { return {pool, device, hardware->launch_handle()}; }

  DeviceInfo device;
  ThreadPool pool;
  uint64_t seed;
  std::unique_ptr<Device> hardware;
  std::unique_ptr<Stream> exchanges, uploads;  // made when first asked for
  MeshCommunicators* ranks = nullptr;          // the other ranks of the run; null: it is alone
  int sharing = 1;                             // ranks that share the memory of this host
  int overlapping = 0;                         // of them, those that share its cores; 0: all
  bool shares_queues = false;                  // another rank of this process is on the same device
  Pulse* pulse = nullptr;                      // where it posts what it is doing; null: nobody watches
};

}  // namespace vitrail
