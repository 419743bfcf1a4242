// What a benchmark of a model found, and comparing it with an earlier one. Shared by bench infer and bench
// train: the keys of the JSON and the rows of the text are the same.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/spread.h"
#include "cli/console.h"
#include "cli/options.h"

namespace vitrail::cli {

struct BenchResult {
  std::string model, device, dtype;
  bool training = false;
  int64_t batch = 0;         // pictures a run
  size_t peak_bytes = 0;     // in arenas
  size_t foreign_bytes = 0;  // on a GPU: of its driver and libraries, beside the arenas
  double flops = 0;          // of the products that run
  double model_flops = 0;    // of the model's products, all tokens: what others compute
  double peak_gflops = 0;    // 0: not known
  Spread seconds;            // of a run

  double images_per_second() const { return static_cast<double>(batch) / seconds.median; }
  double gflops() const { return flops / seconds.median / 1e9; }
};

// --compare, --slack.
std::vector<OptionSpec> comparison_options();

// The JSON of an earlier run that --compare names.
class SavedBench {
 public:
  // Nothing without --compare; Error(kData) for a file that is no result.
  static std::optional<SavedBench> read(const Options& options);

  // Error(kUsage) unless it measured the same on the same; asked before measuring.
  void refuse_another(const BenchResult& run) const;

  double seconds() const { return seconds_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  BenchResult what_;  // all but figures
  double seconds_ = 0;
};

// Prints the result with what else `rows` and `json` tell; Error(kCheck) when it is slower than --slack
// allows.
void report_bench(const BenchResult& result, const std::optional<SavedBench>& saved, const Options& options,
                  const std::vector<std::pair<std::string, std::string>>& rows,
                  const nlohmann::ordered_json& json, Console& console);

}  // namespace vitrail::cli
