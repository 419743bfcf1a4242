// Options that the commands under `bench` and `profile` share, and the printing of their results. Measures
// nothing.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "measure/bench.h"
#include "measure/timing.h"
#include "measure/tuner.h"

namespace vitrail::cli {

// The options --gemm, --rounds and --isa.
std::vector<OptionSpec> tuning_options();
// Returns the GEMMs that --gemm names, or `otherwise` when it is not given.
std::vector<GemmSize> wanted_gemms(const Options& options, const std::vector<GemmSize>& otherwise);

// The options --seconds and --warmup, and --steps where a command has it.
std::vector<OptionSpec> timing_options();
TimingBudget read_timing(const Options& options);

// A progress bar that begins when the warm-up is over; `warm` is called at that moment, too.
class BenchProgress {
 public:
  BenchProgress(Console& console, const char* title, int64_t runs)
      : console_(console), title_(title), runs_(runs) {}
  TimingHooks hooks(const std::function<void()>& warm = {});

 private:
  Console& console_;
  const char* title_;
  int64_t runs_;
  std::optional<Progress> progress_;
};

// The options --compare and --slack.
std::vector<OptionSpec> comparison_options();
std::optional<SavedBench> read_saved(const Options& options);  // nothing without --compare

// Prints the result with the additional `rows` and `json`; throws Error(kCheck) when it is slower than
// --slack allows.
void report_bench(const BenchResult& result, const std::optional<SavedBench>& saved, const Options& options,
                  const std::vector<std::pair<std::string, std::string>>& rows,
                  const nlohmann::ordered_json& json, Console& console);

}  // namespace vitrail::cli
