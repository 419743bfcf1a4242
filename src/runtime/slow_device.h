// A CPU that is slower than it is, for tests of ranks of unequal speed: after every node it sleeps a share of
// the time that the node took. Its results are those of the CPU.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "backend/device.h"

namespace vitrail {

// For tests: "RANK:SHARE[:MARKER]" makes a CPU rank sleep so, while the file MARKER is there if one is named.
inline constexpr const char* kSlowVariable = "VITRAIL_TEST_SLOW";

// A node's kernels ask for the launch handle, and a mark follows the node: the time between is its own.
// Collectives do not ask, so that waiting for others is not drawn out.
class SlowDevice : public Device {
 public:
  SlowDevice(std::unique_ptr<Device> host, double share, std::string marker)
      : host_(std::move(host)), share_(share), marker_(std::move(marker)) {}

  std::byte* allocate(size_t bytes) override { return host_->allocate(bytes); }
  void release(std::byte* data) override { host_->release(data); }
  bool shares_host_memory() const override { return host_->shares_host_memory(); }
  Stream& stream() override { return host_->stream(); }
  std::unique_ptr<Stream> create_stream() override { return host_->create_stream(); }
  std::unique_ptr<Event> create_event() override { return host_->create_event(); }
  void download(void* host, const void* source, size_t bytes) override {
    host_->download(host, source, bytes);
  }
  void clear(void* target, size_t bytes) override { host_->clear(target, bytes); }
  void finish() override { host_->finish(); }

  void* launch_handle() override {
    began_ = Clock::now();
    return host_->launch_handle();
  }
  void mark(size_t slot) override;
  double seconds_between(size_t from, size_t to) override { return host_->seconds_between(from, to); }

 private:
  using Clock = std::chrono::steady_clock;
  std::unique_ptr<Device> host_;
  double share_;
  std::string marker_;
  Clock::time_point began_ = {};
};

// Opens the device of a rank: `setting` is the value of that variable, or null.
std::unique_ptr<Device> open_rank_device(const DeviceInfo& info, int rank, const char* setting);

}  // namespace vitrail
