#include "cli/timing.h"

#include <chrono>

#include "backend/registry.h"
#include "cli/progress.h"
#include "models/rule_weights.h"
#include "plan/roofline.h"

namespace vitrail::cli {

std::vector<OptionSpec> timing_options() {
  return {{.name = "seconds",
           .help = "how long to measure",
           .kind = ValueKind::kNumber,
           .metavar = "S",
           .fallback = "3",
           .least = 0,
           .most = 3600},
          {.name = "warmup",
           .help = "runs before measuring",
           .kind = ValueKind::kInteger,
           .metavar = "N",
           .fallback = "2",
           .least = 0,
           .most = 1000}};
}

std::vector<float> rule_pictures(const VitConfig& c, int64_t count) {
  std::vector<float> pictures(static_cast<size_t>(count * c.channels * c.image_height * c.image_width));
  fill_by_rule({"input", {{'B', count}, {'C', c.channels}, {'Y', c.image_height}, {'X', c.image_width}}},
               pictures);
  return pictures;
}

std::vector<double> time_calls(const Options& options, Console& console, const char* title,
                               const std::function<void()>& run, const std::function<void()>& warm) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kFewestRuns = 3;
  for (int64_t i = 0; i < options.integer("warmup"); ++i) run();
  if (warm) warm();
  const auto exactly = options.declared("steps") ? static_cast<size_t>(options.integer("steps")) : 0;
  const double budget = options.number("seconds");
  std::vector<double> seconds;
  Progress progress(console, title, "runs", static_cast<int64_t>(exactly));
  while (exactly > 0 ? seconds.size() < exactly
                     : seconds.size() < kFewestRuns || progress.seconds() < budget) {
    const Clock::time_point start = Clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    progress.advance(1);
  }
  return seconds;
}

std::vector<double> time_runs(Engine& engine, const Options& options, Console& console, const char* title) {
  const std::vector<float> pictures = rule_pictures(engine.config(), engine.batch());
  bool filled = false;
  const auto run = [&] {
    // On a device of its own pictures are copied once: what is timed is the model.
    if (filled && engine.keeps_inputs())
      engine.run_again();
    else
      engine.run(pictures, engine.batch());
    filled = true;
    engine.finish();
  };
  return time_calls(options, console, title, run, [&] { engine.reset_times(); });
}

namespace {
// A yardstick: a device too full for it still runs the model.
Peaks measured_peaks(const ExecutionPlan& plan, bool copying) {
  try {
    const DevicePeaks peaks =
        find_entry(plan.device.backend).measure(plan.device, product_type(plan.program), copying);
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

}  // namespace vitrail::cli
