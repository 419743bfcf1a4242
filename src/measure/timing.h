// Repeating a call for some time, and the most that a device computes and moves, for benchmarks and profiles.
// Knows no option and shows no progress; hooks are called after every run.
#pragma once

#include <functional>
#include <vector>

#include "api/engine.h"
#include "measure/profile.h"

namespace vitrail {

struct TimingBudget {
  int64_t warmup = 2;  // runs before measuring
  double seconds = 3;  // how long to measure, at least three runs
  int64_t runs = 0;    // measure this many runs instead; 0: by time
};

constexpr size_t kMostTold = 1000;  // runs whose times a result has one by one

// Returns images by rule, in the layout of the model's input.
std::vector<float> rule_images(const VitConfig& config, int64_t count);

struct TimingHooks {
  std::function<void()> warm = {};      // called when the warm-up is over
  std::function<void()> measured = {};  // called after every measured run
};

// Returns the seconds of each call after the warm-up.
std::vector<double> time_calls(const TimingBudget& budget, const std::function<void()>& run,
                               const TimingHooks& hooks = {});

// Times runs of an engine on images by rule; its node times cover exactly these runs.
std::vector<double> time_runs(Engine& engine, const TimingBudget& budget, const TimingHooks& hooks = {});

// Returns the GFLOP/s reached here: by the multiply-add units with the plan's threads and instruction set; on
// a GPU by a large GEMM in the type of the plan's own, and 0 (not known) where it cannot run one, as on a
// full GPU.
double peak_of(const ExecutionPlan& plan);
// Returns the same, and the GB/s of copying.
Peaks peaks_of(const ExecutionPlan& plan);

}  // namespace vitrail
