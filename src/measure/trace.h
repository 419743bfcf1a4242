// A run as a timeline for chrome://tracing and Perfetto: one event a node, end to end, since nodes of a
// program run one at a time. Measures nothing itself.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/executor.h"

namespace vitrail {

// Returns the mean times of the runs as an array of trace events of process `number`, which is shown as
// `name`.
nlohmann::ordered_json trace_events(const ExecutionPlan& plan, const std::vector<NodeTime>& times,
                                    const std::string& name, int number);

}  // namespace vitrail
