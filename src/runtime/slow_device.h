// A CPU that is slower than it is, for tests of ranks of unequal speed: after every node it sleeps a share of
// the time that the node took. Its results are those of the CPU.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "backend/wrapped_device.h"

namespace vitrail {

// Tests set it: "RANK:SHARE[:MARKER]" makes a CPU rank sleep so, while the file MARKER is there if one is
// named.
inline constexpr const char* kSlowVariable = "VITRAIL_TEST_SLOW";

// A node's kernels ask for the launch handle, and a timestamp follows the node: the time between is its own.
// Collectives do not ask, so that waiting for others is not drawn out.
class SlowDevice : public WrappedDevice {
 public:
  SlowDevice(std::unique_ptr<Device> host, double share, std::string marker)
      : WrappedDevice(std::move(host)), share_(share), marker_(std::move(marker)) {}

  void* launch_handle() override {
    began_ = Clock::now();
    return WrappedDevice::launch_handle();
  }
  void stamp(Timestamp& time) override;

 private:
  using Clock = std::chrono::steady_clock;
  double share_;
  std::string marker_;
  Clock::time_point began_ = {};
};

// Opens the device of a rank: `setting` is the value of that variable, or null.
std::unique_ptr<Device> open_rank_device(const DeviceInfo& info, int rank, const char* setting);

}  // namespace vitrail
