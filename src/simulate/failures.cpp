#include "simulate/failures.h"

#include <algorithm>
#include <cmath>

namespace vitrail {

double effective_share(const FailureModel& model, double interval_s) {
  if (model.mtbf_s <= 0) return interval_s / (interval_s + model.checkpoint_s);
  // A failure within interval and checkpoint costs what was done of them and a restart, which may fail too.
  const double expected = model.mtbf_s * std::exp(std::min(700.0, model.restart_s / model.mtbf_s)) *
                          std::expm1(std::min(700.0, (interval_s + model.checkpoint_s) / model.mtbf_s));
  return interval_s / expected;
}

double young_interval(const FailureModel& model) {
  return std::sqrt(2 * model.checkpoint_s * model.mtbf_s);
}

double daly_interval(const FailureModel& model) {
  const double ratio = model.checkpoint_s / (2 * model.mtbf_s);
  if (ratio >= 1) return model.mtbf_s;
  return young_interval(model) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - model.checkpoint_s;
}

double best_interval(const FailureModel& model) {
  // The share rises and falls once; the golden section closes in on its top.
  constexpr double kGolden = 0.6180339887498949;
  double low = 1e-9 * model.mtbf_s, high = std::max(model.mtbf_s, model.checkpoint_s) * 2;
  for (int i = 0; i < 200 && high - low > 1e-9 * high; ++i) {
    const double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    if (effective_share(model, a) > effective_share(model, b))
      high = b;
    else
      low = a;
  }
  return (low + high) / 2;
}

std::vector<CheckpointInterval> checkpoint_intervals(const FailureModel& model, double own_s) {
  std::vector<CheckpointInterval> rows = {{"best", best_interval(model)},
                                          {"Young", young_interval(model)},
                                          {"Daly", daly_interval(model)},
                                          {"train.save_minutes", own_s}};
  if (own_s <= 0) rows.pop_back();
  for (CheckpointInterval& row : rows) row.share = effective_share(model, row.seconds);
  return rows;
}

}  // namespace vitrail
