// A device in use: its memory, the streams of its work, and how a list of launches is recorded to be
// repeated. The planner never sees one (it works from DeviceInfo); the runtime holds one per rank, and no two
// ranks wait for each other here. The host's memory is ordinary memory and its work is done when a call
// returns.
#pragma once

#include <functional>
#include <memory>
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

// A point in the order of a stream's work, set by Stream::record.
class Event {
 public:
  virtual ~Event() = default;
  // The host waits until the work before it is done: not at all while it was never recorded.
  virtual void synchronize() {}
};

// A queue of work that is done in order. Streams of one device run side by side and are ordered by events
// alone. The device must outlive it.
class Stream {
 public:
  virtual ~Stream() = default;
  // Copies are enqueued behind earlier work. The host's bytes may be reused when the call returns, those of
  // Device::host_memory() when the copy is finished.
  virtual void upload(void* target, const void* host, size_t bytes) = 0;
  virtual void copy(void* target, const void* source, size_t bytes) = 0;
  // The event now stands behind everything enqueued so far; it may stand elsewhere while older waits last.
  virtual void record(Event& event) = 0;
  // What is enqueued from now on waits for where the event stands. The host does not.
  virtual void wait(const Event& event) = 0;
};

class Device : public MemorySource {
 public:
  // Whether the host may read and write the device's memory by its addresses.
  virtual bool shares_host_memory() const = 0;
  // The host's memory from which uploads are fast. It must go before the device does.
  virtual MemorySource* host_memory() { return this; }

  // The stream on which programs run, and further ones beside it.
  virtual Stream& stream() = 0;
  virtual std::unique_ptr<Stream> create_stream() = 0;
  virtual std::unique_ptr<Event> create_event() = 0;
  // What kernels find in LaunchContext::stream.
  virtual void* launch_handle() { return nullptr; }

  // On stream(); a download has arrived when it returns.
  void upload(void* target, const void* host, size_t bytes) { stream().upload(target, host, bytes); }
  void copy(void* target, const void* source, size_t bytes) { stream().copy(target, source, bytes); }
  virtual void download(void* host, const void* source, size_t bytes) = 0;
  virtual void clear(void* target, size_t bytes) = 0;
  virtual void finish() = 0;  // waits for everything enqueued on any stream

  // Memory of a device that has its own; 0: unknown.
  virtual size_t free_bytes() const { return 0; }
  virtual size_t usable_bytes() const { return 0; }  // by arenas: the free bytes without a small reserve
  // What the driver and its libraries took when the device was opened: no arena holds it.
  virtual size_t foreign_bytes() const { return 0; }

  // Whether work can be recorded. Between start and end what this thread launches on stream() is recorded
  // instead of done. Null at the end: what another thread did meanwhile (loading a kernel, allocating) spoilt
  // the recording. Nothing was done then.
  virtual bool records() const { return false; }
  virtual void start_recording() {}
  virtual std::unique_ptr<Recording> end_recording() { return nullptr; }

  // Moments in the order of the work; seconds_between waits for both. Slots are reused by number.
  virtual void mark(size_t slot) = 0;
  virtual double seconds_between(size_t from, size_t to) = 0;
};

// What `work` launches, recorded; null where the recording was spoilt, which may be tried again. A launch
// that fails for a reason of its own throws, and does not leave the device recording.
std::unique_ptr<Recording> record(Device& device, const std::function<void()>& work);

// The device `info` describes; Error(kDevice) when it cannot be used here.
std::unique_ptr<Device> open_device(const DeviceInfo& info);
// This machine itself: its memory is the process's.
std::unique_ptr<Device> open_host_device();

}  // namespace vitrail
