// The result of a benchmark of a model, and its comparison with an earlier one: the keys of the JSON and the
// rows of the text are the same for inference and training. Measures nothing and prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/timing.h"

namespace vitrail {

struct BenchResult {
  std::string model, device, dtype;
  bool training = false;
  int64_t batch = 0;         // images per run
  size_t peak_bytes = 0;     // in arenas
  size_t foreign_bytes = 0;  // held by a GPU's driver and libraries, beside the arenas
  double flops = 0;          // FLOPs of the GEMMs that run
  double model_flops = 0;    // FLOPs of the whole model's GEMMs, all tokens, as others compute them
  double peak_gflops = 0;    // 0: not known
  Spread seconds;            // time of a run

  double images_per_second() const { return static_cast<double>(batch) / seconds.median; }
  double gflops() const { return flops / seconds.median / 1e9; }
};

// Returns the facts of a result that are known before it is measured.
BenchResult described(const Engine& engine, const std::string& name, const std::string& dtype);

nlohmann::ordered_json to_json(const BenchResult& result);
std::vector<std::pair<std::string, std::string>> text_rows(const BenchResult& result);

// Throws Error(kCheck) where a run's speed, in proportion to a saved one's, is below 1 / (1 + slack).
void require_speed(double speed, double slack);

// The saved JSON of an earlier run.
class SavedBench {
 public:
  // Throws Error(kData) for a file that is not a result.
  static SavedBench read(const std::string& path);

  // Throws Error(kUsage) unless it measured the same work on the same device; called before measuring.
  void refuse_another(const BenchResult& run) const;

  double seconds() const { return seconds_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  BenchResult what_;  // everything but the figures
  double seconds_ = 0;
};

}  // namespace vitrail
