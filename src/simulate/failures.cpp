#include "simulate/failures.h"

#include <algorithm>
#include <cmath>

namespace vitrail {

namespace {

// The logarithm of effective_share(): where failures leave next to nothing, shares themselves are all 0.
double log_share(const FailureModel& model, double interval_s) {
  // A failure within interval and checkpoint costs what was done of them and a restart, which may fail too:
  // an expected mtbf e^(restart / mtbf) (e^(segment / mtbf) - 1).
  const double segment = (interval_s + model.checkpoint_s) / model.mtbf_s;
  const double log_expected =
      std::log(model.mtbf_s) + model.restart_s / model.mtbf_s + segment + std::log(-std::expm1(-segment));
  return std::log(interval_s) - log_expected;
}

}  // namespace

double effective_share(const FailureModel& model, double interval_s) {
  if (model.mtbf_s <= 0) return interval_s / (interval_s + model.checkpoint_s);
  return std::exp(log_share(model, interval_s));
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
    if (log_share(model, a) > log_share(model, b))
      high = b;
    else
      low = a;
  }
  return (low + high) / 2;
}

bool makes_progress(const FailureModel& model) {
  constexpr double kLeastShare = 0.0005;
  return model.mtbf_s <= 0 || effective_share(model, best_interval(model)) >= kLeastShare;
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
