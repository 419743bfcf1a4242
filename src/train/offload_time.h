// The seconds that an update waits for the host, where the host keeps and updates a part of the state.
// Predicts it from the bytes of the plan; measures nothing.
#pragma once

#include <algorithm>

#include "train/step_plan.h"

namespace vitrail {

// Rates that are assumed, since no device file has them.
inline constexpr double kHostLinkBytes = 12e9;    // a second each way: PCIe 3 x16 in practice
inline constexpr double kHostUpdateBytes = 20e9;  // a second, read and written by the host's update

// The parts of an offloaded update, in seconds, which all buckets together spend at the same time.
struct OffloadTimes {
  double down = 0;    // gradients, from the device to the host
  double up = 0;      // copies of what was updated, from the host to the device
  double update = 0;  // the host's programs

  double longest() const { return std::max({down, up, update}); }
};
OffloadTimes offload_times(const OffloadPlan& offload);

// Returns what an offload adds to an update of `update_s` seconds on the device: the longest of its parts,
// and what remains of the parameters on the host, which come up twice a micro-batch while the device
// computes. 0 without an offload.
double host_seconds(const StepPlan& step, int64_t micro_batches, double update_s);

}  // namespace vitrail
