#include "measure/timing.h"

#include "backend/registry.h"
#include "base/timing.h"
#include "models/vit_init.h"
#include "plan/roofline.h"

namespace vitrail {

std::vector<float> rule_images(const VitConfig& c, int64_t count) {
  std::vector<float> images(static_cast<size_t>(count * c.channels * c.image_height * c.image_width));
  fill_by_rule({"input", {{'B', count}, {'C', c.channels}, {'Y', c.image_height}, {'X', c.image_width}}},
               images);
  return images;
}

std::vector<double> time_calls(const TimingBudget& budget, const std::function<void()>& run,
                               const TimingHooks& hooks) {
  constexpr size_t kFewestRuns = 3;
  for (int64_t i = 0; i < budget.warmup; ++i) run();
  if (hooks.warm) hooks.warm();
  const auto exactly = static_cast<size_t>(budget.runs);
  const Clock::time_point begin = Clock::now();
  std::vector<double> seconds;
  while (exactly > 0 ? seconds.size() < exactly
                     : seconds.size() < kFewestRuns || seconds_since(begin) < budget.seconds) {
    const Clock::time_point start = Clock::now();
    run();
    seconds.push_back(seconds_since(start));
    if (hooks.measured) hooks.measured();
  }
  return seconds;
}

std::vector<double> time_runs(Engine& engine, const TimingBudget& budget, const TimingHooks& hooks) {
  const std::vector<float> images = rule_images(engine.config(), engine.batch());
  bool filled = false;
  const auto run = [&] {
    // On a GPU images are copied once, so that only the model is timed.
    if (filled && engine.keeps_inputs())
      engine.run_again();
    else
      engine.run(images, engine.batch());
    filled = true;
    engine.finish();
  };
  const auto warm = [&] {
    engine.reset_times();
    if (hooks.warm) hooks.warm();
  };
  return time_calls(budget, run, {warm, hooks.measured});
}

namespace {
// The peaks are only for comparison: a device too full to measure them still runs the model.
Peaks measured_peaks(const ExecutionPlan& plan, bool copying) {
  try {
    const BackendEntry& backend = find_entry(plan.device.backend);
    const DevicePeaks peaks =
        backend.measure(plan.device, *backend.open(plan.device), gemm_type(plan.program), copying);
    return {peaks.gflops, peaks.gbps};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMemory) throw;
    return {};
  }
}
}  // namespace

double peak_of(const ExecutionPlan& plan) {
  return measured_peaks(plan, false).gflops;
}

Peaks peaks_of(const ExecutionPlan& plan) {
  return measured_peaks(plan, true);
}

}  // namespace vitrail
