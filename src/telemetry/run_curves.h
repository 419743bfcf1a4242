// The curves and events of a run, read from its metrics.jsonl: what the report shows is what the log says,
// resumed runs included.
#pragma once

#include <string>
#include <vector>

#include "telemetry/chart.h"
#include "telemetry/run_status.h"

namespace vitrail {

struct RunHistory {
  std::vector<LineChart>
      curves;  // loss, accuracy, learning rate, speed, data wait, gradient norm: what there is
  std::vector<RunEvent> events;
};

// Error(kData) when the file is there and cannot be read; a missing one is an empty history.
RunHistory read_run_history(const std::string& metrics_path);

}  // namespace vitrail
