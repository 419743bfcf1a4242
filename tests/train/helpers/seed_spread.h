// How far the losses of one run lie from another's, with other seeds as the yardstick. Low precision such as
// fp8 moves single steps by several percent where a loss falls steeply, and seeds move them by far more: the
// criterion is whether a run stays nearer to its f32 run than f32 runs of other seeds do.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "train/helpers/tiny_run.h"

namespace vitrail::testing {

constexpr size_t kLastSteps = 20;

// Mean relative difference over the last steps.
inline double mean_share(const std::vector<double>& found, const std::vector<double>& wanted, size_t steps) {
  if (found.size() != wanted.size() || found.size() < steps) return INFINITY;
  double sum = 0;
  for (size_t i = found.size() - steps; i < found.size(); ++i)
    sum += std::abs(found[i] - wanted[i]) / std::abs(wanted[i]);
  return sum / static_cast<double>(steps);
}

class SeedSpread {
 public:
  // The f32 run of the config, and three more with other seeds.
  SeedSpread(TrainConfig config, const RunOptions& options) : wanted_(losses_of(config, options)) {
    for (int i = 0; i < 3; ++i) {
      ++config.train.seed;
      const std::vector<double> other = losses_of(config, options);
      nearest_ = std::min(nearest_, mean_share(other, wanted_, wanted_.size()));
      farthest_end_ = std::max(farthest_end_, mean_share(other, wanted_, kLastSteps));
    }
  }

  const std::vector<double>& wanted() const { return wanted_; }

  // Over all steps less than half as far as the nearest seed; over the last ones no farther than the
  // farthest: there the losses of all runs have nearly come together.
  void expect_within(const std::vector<double>& found, const std::string& name) const {
    const double all = mean_share(found, wanted_, wanted_.size());
    const double end = mean_share(found, wanted_, kLastSteps);
    const std::string told = strf(
        "%s: mean difference %.3f %% (nearest seed %.3f %%), last %zu steps %.3f %% (farthest seed "
        "%.3f %%), worst step %.2f %%",
        name.c_str(), 100 * all, 100 * nearest_, kLastSteps, 100 * end, 100 * farthest_end_,
        100 * worst_share(found, wanted_));
    std::printf("             %s\n", told.c_str());
    EXPECT_LT(all, 0.5 * nearest_) << told;
    EXPECT_LT(end, farthest_end_) << told;
  }

 private:
  std::vector<double> wanted_;
  double nearest_ = INFINITY, farthest_end_ = 0;
};

// Learnable data, in sizes that fp8 GEMMs accept.
inline TrainConfig rounded_config(int64_t steps) {
  TrainConfig config = learnable_config(steps);
  set_model(config, "width", [](VitConfig& m) { m.width = 32; });
  set_model(config, "mlp", [](VitConfig& m) { m.mlp = 64; });
  return config;
}

}  // namespace vitrail::testing
