// Collectives among the devices of a group's ranks. They are enqueued on a stream like a kernel and run in
// its order; the host never waits for them, so they can be recorded with the work around them. Knows no
// program.
#pragma once

#include <memory>
#include <string>

#include "dist/communicator.h"

namespace vitrail {

class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;
  DeviceCommunicator() = default;
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // `stream` is what Stream::handle() of the rank's device gives; `in` and `out` are memory of that device.
  // All ranks of a group enqueue the same collectives in the same order. Any kind but a barrier. Throws
  // Error(kComm) when the group has failed. 16-bit types are rounded wherever two parts of a sum meet.
  virtual void enqueue(const Collective& collective, void* stream) = 0;
  // Throws Error(kComm) when the group has failed, now or since: what was enqueued may have done nothing.
  virtual void check() = 0;
  // Ends what is enqueued and makes every later call fail with this text. May be called from any thread.
  virtual void abort(const std::string& why) = 0;
  // Returns how long an answer may take where the host waits for one.
  virtual double deadline_s() const = 0;
};

// Makes device communicators of groups of ranks.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;
  virtual const char* name() const = 0;  // "nccl"
  // Every rank of the group calls it, with its device current in the calling thread. The group must outlive
  // what is returned: an abort of the group aborts that, too, and its failure aborts the group.
  virtual std::unique_ptr<DeviceCommunicator> join(Communicator& group) = 0;
};

}  // namespace vitrail
