// A planned training run on its target device: whether it fits, the largest micro-batch, levels of
// recomputation, time. Prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "plan/target.h"
#include "train/run_plan.h"

namespace vitrail {

struct RunEstimate {
  std::string where = "here";  // or the target's name
  size_t available = 0, foreign = 0;
  int64_t largest = 0;  // largest micro-batch that fits
  std::vector<RunPlan::Level> levels;
  std::optional<RunPlan::Offloaded> offload;  // that fits, where the plan does not
  size_t host_available = 0;                  // 0: not known, of another machine
  double peak_gflops = 0, update_s = 0;       // 0: not known, for a processor that is not present
  double watts = 0;                           // that the device may draw; 0: not known
  bool calibrated = false;
  std::string basis;                 // on what the time stands, where there is a device file
  std::set<std::string> unmeasured;  // types estimated at the rate of f32
};

// Estimates the time node by node from the target's device file, or from the peak measured here without one.
RunEstimate estimate_run(const RunPlan& plan, const PlanTarget& target);

nlohmann::ordered_json to_json(const RunPlan& plan, const RunEstimate& estimate);
std::string to_text(const RunPlan& plan, const RunEstimate& estimate);

// Returns whether it fits its memories, the device's and the host's; the text says which offload would help.
bool fits(const RunPlan& plan, const RunEstimate& estimate);
std::string fits_text(const RunPlan& plan, const RunEstimate& estimate);
std::string fit_warning(const RunPlan& plan, const RunEstimate& estimate);  // empty: it fits
// The memory of the host, where an offload keeps state there; else empty.
std::string host_table(const RunPlan& plan, const RunEstimate& estimate);
void add_offload(nlohmann::ordered_json& json, const RunPlan& plan, const RunEstimate& estimate);

}  // namespace vitrail
