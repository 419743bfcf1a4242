// A device in use: its memory, its streams, and how a list of launches is recorded to be replayed. The
// planner never sees one (it works from DeviceInfo); the runtime holds one per rank, and ranks do not
// synchronise here. On the host device memory is ordinary memory and work is done when a call returns.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/device_info.h"
#include "tensor/dtype.h"
#include "tensor/memory_source.h"

namespace vitrail {

// A recorded list of launches that the device replays without the host (a CUDA graph on a GPU).
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;  // enqueued like any other work
};

// A point in the order of a stream's work, set by Stream::record.
class Event {
 public:
  virtual ~Event() = default;
  // The host waits until the work recorded before the event is done; an event that was never recorded is not
  // waited for.
  virtual void synchronize() {}
  virtual bool reached() { return true; }  // whether that work is done; nobody waits
};

// A time in the order of a stream's work, set by Stream::stamp. In a recording it is set anew by every
// replay.
class Timestamp {
 public:
  virtual ~Timestamp() = default;
  virtual void synchronize() {}  // the host waits until it is reached
};

// A queue of work that is done in order. Streams of one device run concurrently and are ordered by events
// alone. The device must outlive its streams.
class Stream {
 public:
  virtual ~Stream() = default;
  // Copies are enqueued behind earlier work. The host's bytes may be reused when the call returns; bytes of
  // Device::host_memory() may be reused when the copy is finished.
  virtual void upload(void* target, const void* host, size_t bytes) = 0;
  virtual void copy(void* target, const void* source, size_t bytes) = 0;
  // The target is bytes of Device::host_memory(), which have arrived when the copy is finished.
  virtual void download(void* host, const void* source, size_t bytes) { copy(host, source, bytes); }
  // The event marks everything enqueued so far. It may be recorded again while waits for its earlier mark are
  // pending.
  virtual void record(Event& event) = 0;
  // Work enqueued from now on waits until the event's mark is reached. The host does not wait.
  virtual void wait(const Event& event) = 0;
  virtual void stamp(Timestamp&) {}
  // Returns what a library that enqueues work of its own takes for this stream (cudaStream_t on a GPU).
  virtual void* handle() { return nullptr; }
};

class Device : public MemorySource {
 public:
  // Returns whether the host can read and write the device's memory through its addresses.
  virtual bool shares_host_memory() const = 0;
  // The source of host memory from which uploads are fast (page-locked for a GPU). It must be destroyed
  // before the device is.
  virtual MemorySource* host_memory() { return this; }

  // The stream on which programs run, and additional streams that run beside it.
  virtual Stream& stream() = 0;
  virtual std::unique_ptr<Stream> create_stream() = 0;
  // One whose work goes first where both have some that could run.
  virtual std::unique_ptr<Stream> create_urgent_stream() { return create_stream(); }
  virtual std::unique_ptr<Event> create_event() = 0;
  virtual std::unique_ptr<Timestamp> create_timestamp() = 0;
  // Sets a time on stream(), before and after the nodes of a program that is timed.
  virtual void stamp(Timestamp& time) { stream().stamp(time); }
  // Returns nothing where one of them is still to be reached or was never set; nobody waits.
  virtual std::optional<double> seconds_apart(const Timestamp& from, const Timestamp& to) = 0;
  // Makes the device the calling thread's, for libraries that ask for it.
  virtual void make_current() {}
  // A name that no other device of this host has, whatever number this process knows it by.
  virtual std::string identity() const { return {}; }
  // The handle that kernels get as LaunchContext::stream.
  virtual void* launch_handle() { return nullptr; }

  // These copy on stream(); a download has arrived when the call returns.
  void upload(void* target, const void* host, size_t bytes) { stream().upload(target, host, bytes); }
  void copy(void* target, const void* source, size_t bytes) { stream().copy(target, source, bytes); }
  virtual void download(void* host, const void* source, size_t bytes) = 0;
  virtual void clear(void* target, size_t bytes) = 0;
  virtual void finish() = 0;  // waits for everything enqueued on any stream

  // The free bytes of a device with memory of its own; 0: unknown.
  virtual size_t free_bytes() const { return 0; }
  virtual size_t usable_bytes() const { return 0; }  // the free bytes less a small reserve: for arenas
  // The bytes that the driver and its libraries took when the device was opened, which no arena holds.
  virtual size_t foreign_bytes() const { return 0; }

  // Returns whether work can be recorded. Between start and end, what this thread launches on stream() is
  // recorded and not run. The end returns null when another thread spoilt the recording (by loading a kernel
  // or allocating); nothing has run then.
  virtual bool records() const { return false; }
  virtual void start_recording() {}
  virtual std::unique_ptr<Recording> end_recording() { return nullptr; }
};

// The seconds from one to the other, which is waited for.
double awaited_seconds(Device& device, const Timestamp& from, Timestamp& to);
// The seconds that stream() takes for what `work` enqueues; waits for its end.
double timed_seconds(Device& device, const std::function<void()>& work);

// Records what `work` launches. Null means that another thread spoilt the recording, which may be tried
// again. A launch that fails for a reason of its own throws, and the device is not left recording.
std::unique_ptr<Recording> record(Device& device, const std::function<void()>& work);

// Fills memory with random values in [-1, 1), the same few repeated: zeros would need less power and run
// faster. Bytes are e4m3 codes.
void fill_for_timing(Device& device, std::byte* target, DType dtype, size_t elems);

// Opens the device that `info` describes; throws Error(kDevice) when it cannot be used here.
std::unique_ptr<Device> open_device(const DeviceInfo& info);
// Opens this machine's CPU as a device; its memory is the process's.
std::unique_ptr<Device> open_host_device();

}  // namespace vitrail
