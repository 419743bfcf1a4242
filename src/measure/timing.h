// Running something over and over for a while, and the most that a device computes and moves: what benchmarks
// and profiles are made of. Knows no option and shows no progress; hooks hear of every run.
#pragma once

#include <functional>
#include <vector>

#include "api/engine.h"
#include "measure/profile.h"

namespace vitrail {

struct TimingBudget {
  int64_t warmup = 2;  // runs before measuring
  double seconds = 3;  // how long to measure, three runs at least
  int64_t runs = 0;    // this many of them instead; 0: by time
};

// Images by rule, as the model takes them.
std::vector<float> rule_images(const VitConfig& config, int64_t count);

struct TimingHooks {
  std::function<void()> warm = {};      // the warm-up is over
  std::function<void()> measured = {};  // a run is
};

// Seconds of each call after the warm-up.
std::vector<double> time_calls(const TimingBudget& budget, const std::function<void()>& run,
                               const TimingHooks& hooks = {});

// Runs of an engine on images by rule; its node times cover exactly these runs.
std::vector<double> time_runs(Engine& engine, const TimingBudget& budget, const TimingHooks& hooks = {});

// GFLOP/s reached here: by the multiply-add units with the plan's threads and instruction set; on a GPU by a
// large GEMM in the type of the plan's own, and 0 (not known) where it cannot run one, as on a full GPU.
double peak_of(const ExecutionPlan& plan);
// The same, and the GB/s of copying.
Peaks peaks_of(const ExecutionPlan& plan);

}  // namespace vitrail
