// Running an engine over and over for a while: the loop of bench and profile.
#pragma once

#include <vector>

#include "api/engine.h"
#include "cli/console.h"
#include "cli/options.h"

namespace vitrail::cli {

// --seconds, --warmup.
std::vector<OptionSpec> timing_options();

// The rule's pictures, as many as the engine's batch.
std::vector<float> rule_pictures(const Engine& engine);

// Seconds of each run after the warm-up: at least three, then until --seconds are over. Node times of the
// engine cover exactly these runs.
std::vector<double> time_runs(Engine& engine, const Options& options, Console& console, const char* title);

// GFLOP/s this machine's multiply-add units reach with the plan's threads and instruction set.
double peak_of(const ExecutionPlan& plan);

}  // namespace vitrail::cli
