// Running something over and over for a while: the loop of bench and profile.
#pragma once

#include <functional>
#include <vector>

#include "api/engine.h"
#include "cli/console.h"
#include "cli/options.h"
#include "measure/profile.h"

namespace vitrail::cli {

// --seconds, --warmup.
std::vector<OptionSpec> timing_options();

// Pictures by rule, as the model takes them.
std::vector<float> rule_pictures(const VitConfig& config, int64_t count);

// Seconds of each call after the warm-up, which `warm` ends: at least three, then until --seconds are over;
// or
// --steps of them, where a command has that option and it is not 0.
std::vector<double> time_calls(const Options& options, Console& console, const char* title,
                               const std::function<void()>& run, const std::function<void()>& warm = {});

// Runs of an engine on pictures by rule; its node times cover exactly these runs.
std::vector<double> time_runs(Engine& engine, const Options& options, Console& console, const char* title);

// GFLOP/s reached here: by the multiply-add units with the plan's threads and instruction set; on a GPU by a
// large product in the type of the plan's own, and 0 (not known) where it cannot run one, as on a full card.
double peak_of(const ExecutionPlan& plan);
// The same, and the GB/s of copying.
Peaks peaks_of(const ExecutionPlan& plan);

}  // namespace vitrail::cli
