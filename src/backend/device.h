// A device in use: its memory, the order of its work, and how a list of launches is recorded to be repeated.
// The planner never sees one (it works from DeviceInfo); the runtime holds one per rank. The host's memory is
// ordinary memory and its work is done when a call returns.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/device_info.h"
#include "tensor/memory_source.h"

namespace vitrail {

// A list of launches that a device can repeat without the host's help.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;  // enqueued like any other work
};

class Device : public MemorySource {
 public:
  // Whether the host may read and write the device's memory by its addresses.
  virtual bool shares_host_memory() const = 0;
  // The host's memory from which uploads are fast; null: any. It must go before the device does.
  virtual MemorySource* host_memory() { return nullptr; }
  // Copies are enqueued behind earlier work. The host's bytes may be reused when the call returns, those of
  // host_memory() when the copy is finished; a download has arrived when it returns.
  virtual void upload(void* target, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* source, size_t bytes) = 0;
  virtual void copy(void* target, const void* source, size_t bytes) = 0;
  virtual void clear(void* target, size_t bytes) = 0;
  virtual void finish() = 0;  // waits for everything enqueued, aside too

  // A lane for what later work needs: an upload aside waits for none of the work, so that both run at once.
  // take() is a copy(), enqueued like one, that waits for the uploads aside so far; those to come wait for
  // it, so the landing place may be filled again at once. The host's bytes stay as they are until work behind
  // take(), or finish(), is done. Not while recording. A device without such a lane does all in order.
  virtual void upload_aside(void* landing, const void* host, size_t bytes) { upload(landing, host, bytes); }
  virtual void take(void* target, const void* landing, size_t bytes) { copy(target, landing, bytes); }

  // Memory of a device that has its own; 0: unknown.
  virtual size_t free_bytes() const { return 0; }
  virtual size_t usable_bytes() const { return 0; }  // by arenas: the free bytes without a small reserve
  // What the driver and its libraries took when the device was opened: no arena holds it.
  virtual size_t foreign_bytes() const { return 0; }

  // What kernels find in Lane::stream.
  virtual void* stream() { return nullptr; }

  // Held around work that is launched for the first time: what libraries then ask of the driver would spoil
  // what another thread records.
  virtual std::unique_lock<std::mutex> alone() { return {}; }

  // Whether work can be recorded. Between start and end launches are recorded instead of done; one thread at
  // a time does so.
  virtual bool records() const { return false; }
  virtual void start_recording() {}
  virtual std::unique_ptr<Recording> end_recording() { return nullptr; }

  // Moments in the order of the work; seconds_between waits for both. Slots are reused by number.
  virtual void mark(size_t slot) = 0;
  virtual double seconds_between(size_t from, size_t to) = 0;
};

// What `work` launches, recorded; a launch that fails does not leave the device recording.
std::unique_ptr<Recording> record(Device& device, const std::function<void()>& work);

// The device `info` describes; Error(kDevice) when it cannot be used here.
std::unique_ptr<Device> open_device(const DeviceInfo& info);

}  // namespace vitrail
