// The curves and events of a run, read from its metrics.jsonl, so that the report shows what was logged,
// resumed runs included.
#pragma once

#include <string>
#include <vector>

#include "telemetry/plot/plot.h"
#include "telemetry/run_status.h"

namespace vitrail {

struct RunHistory {
  std::vector<LineChart>
      curves;  // loss, accuracy, learning rate, speed, data wait, gradient norm: what there is
  std::vector<RunEvent> events;
};

// Throws Error(kData) when the file exists and cannot be read; a missing one is an empty history.
RunHistory read_run_history(const std::string& metrics_path);

}  // namespace vitrail
