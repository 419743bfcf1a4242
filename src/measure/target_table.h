// One run on every device that has a file: whether it fits, the largest batch, the predicted time. Knows no
// option and prints nothing.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "measure/inference_plan.h"
#include "telemetry/plot/figure.h"
#include "train/run_plan.h"

namespace vitrail {

struct TargetRow {
  std::string model = {};  // where the table has several
  std::string device, source;
  std::string problem;  // why it cannot run there at all; empty: it can
  size_t needed_bytes = 0, available_bytes = 0;
  int64_t largest = 0;  // batch, or micro-batch, that fits
  double seconds = 0;   // of a run, or of an update
  double images = 0;    // in it
  double epoch_s = 0;   // 0: the number of images is not known
  bool fits() const { return problem.empty() && needed_bytes <= available_bytes; }
};

// Fills a row for one device.
using PlanOnTarget = std::function<void(const PlanTarget& target, TargetRow& row)>;
// Plans on each device of these files. What a device does not compute (a type, an instruction set) is the
// row's problem; throws Error(kUsage) where that is every row's. Rows with a problem come first, then the
// slowest device.
struct TargetOptions {
  int threads = 0;  // of processors; 0: all of their cores
  std::string isa;  // empty: the one that was measured
};
std::vector<TargetRow> plan_on_all(const std::vector<std::string>& files, const TargetOptions& options,
                                   const PlanOnTarget& plan);

void fill_row(const InferencePlan& plan, TargetRow& row);
void fill_row(const RunPlan& plan, const PlanTarget& target, TargetRow& row);

nlohmann::ordered_json to_json(const std::vector<TargetRow>& rows);
std::string to_text(const std::vector<TargetRow>& rows);
// Bars of what each row needs beside what its device has.
Figure memory_figure(const std::vector<TargetRow>& rows);

}  // namespace vitrail
