// One measurement for every combination of settings: `--sweep threads=1,2,4 --sweep parallel=heads,rows`.
// Parses what is asked, applies a combination, and shows the results as table, figure and JSON. Times nothing
// itself.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "measure/profile_run.h"
#include "telemetry/html.h"
#include "telemetry/plot/figure.h"

namespace vitrail {

// Says what threads share.
struct ParallelKinds {
  bool heads = false, rows = false, softmax = false;
};
// Parses "heads,rows" (separated by `separator`), "all" or "none"; throws Error(kUsage), naming `option`.
ParallelKinds parse_parallel(const std::string& list, char separator, const char* option);

struct SweepAxis {
  std::string name;  // "threads", "parallel", "batch" or "dtype"
  std::vector<std::string> values;
};
// Throws Error(kUsage) for what cannot be swept, a value that is none, or an axis that is named twice.
std::vector<SweepAxis> parse_sweeps(const std::vector<std::string>& texts);

using SweepValues = std::vector<std::string>;  // one of each axis
// Sets what the values say, for an inference on `device` or for a training run.
void apply(const std::vector<SweepAxis>& axes, const SweepValues& values, const std::string& device,
           EngineOptions& engine);
void apply(const std::vector<SweepAxis>& axes, const SweepValues& values, TrainConfig& config,
           DeviceInfo& device);

struct Sweep {
  struct Row {
    SweepValues values;
    Profile profile;
  };
  std::vector<SweepAxis> axes;
  std::vector<Row> rows;  // the last axis runs fastest
};
Sweep run_sweep(const std::vector<SweepAxis>& axes,
                const std::function<Profile(const SweepValues&)>& measure);

// Speed-ups are against the first row, in images a second.
HtmlTable to_table(const Sweep& sweep);
std::string to_text(const Sweep& sweep);
nlohmann::ordered_json to_json(const Sweep& sweep);
// Lines over an axis of numbers, else bars; the time t1/n that threads would ideally take is dashed.
Figure sweep_figure(const Sweep& sweep);

}  // namespace vitrail
