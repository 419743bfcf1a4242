#include "measure/study/points.h"

#include <algorithm>
#include <cmath>

#include "backend/registry.h"

namespace vitrail {

namespace {

constexpr double RankTime::*kParts[] = {&RankTime::compute_s, &RankTime::exposed_s, &RankTime::data_wait_s,
                                        &RankTime::hidden_s, &RankTime::imbalance_s};

double mean_of_ranks(const CaseResult& result, double RankTime::*part) {
  double sum = 0;
  for (const RankTime& rank : result.ranks) sum += rank.*part;
  return result.ranks.empty() ? 0 : sum / static_cast<double>(result.ranks.size());
}

template <typename Value>
Spread spread_over(const std::vector<const CaseResult*>& runs, const Value& value) {
  std::vector<double> values;
  for (const CaseResult* run : runs)
    if (const double v = value(*run); std::isfinite(v)) values.push_back(v);
  return spread_of(values);
}

double median_over(const std::vector<const CaseResult*>& runs, double CaseResult::*value) {
  const Spread spread = spread_over(runs, [&](const CaseResult& r) { return r.*value; });
  return spread.count > 0 ? spread.median : kUnknown;
}

double warmest(const CaseResult& result) {
  double most = kUnknown;
  for (const GpuReading& gpu : result.gpus)
    if (!(gpu.temperature <= most)) most = gpu.temperature;
  return most;
}

double mean_epoch_s(const CaseResult& result) {
  double sum = 0;
  for (const EpochResult& epoch : result.epochs) sum += epoch.seconds;
  return result.epochs.empty() ? kUnknown : sum / static_cast<double>(result.epochs.size());
}

double last_top1(const CaseResult& result) {
  return result.epochs.empty() ? kUnknown : result.epochs.back().top1;
}

// The means of the repetitions, epoch by epoch.
std::vector<EpochResult> mean_epochs(const std::vector<const CaseResult*>& runs) {
  std::vector<EpochResult> epochs;
  for (const CaseResult* run : runs)
    if (run->epochs.size() > epochs.size()) epochs = run->epochs;
  for (size_t i = 0; i < epochs.size(); ++i)
    for (double EpochResult::*value :
         {&EpochResult::seconds, &EpochResult::train_loss, &EpochResult::eval_loss, &EpochResult::top1}) {
      double sum = 0, count = 0;
      for (const CaseResult* run : runs)
        if (i < run->epochs.size()) {
          sum += run->epochs[i].*value;
          ++count;
        }
      epochs[i].*value = sum / count;
    }
  return epochs;
}

std::vector<double> loads_of(const std::vector<const CaseResult*>& runs) {
  std::vector<double> loads;
  for (size_t rank = 0; !runs.empty() && rank < runs[0]->ranks.size(); ++rank)
    loads.push_back(spread_over(runs, [&](const CaseResult& r) {
                      const RankTime& time = r.ranks[rank];
                      return time.total_s() > 0 ? time.compute_s / time.total_s() : kUnknown;
                    }).median);
  return loads;
}

StudyPoint point_of(const std::vector<const CaseResult*>& all) {
  StudyPoint point{.which = all.front()->which};
  std::vector<const CaseResult*> runs;
  for (const CaseResult* run : all) {
    if (run->done()) {
      runs.push_back(run);
    } else {
      ++point.failed;
      point.error = run->error;
    }
  }
  point.update_s = spread_over(runs, [](const CaseResult& r) { return r.update_s; });
  point.images_per_s = spread_over(runs, [](const CaseResult& r) { return r.images_per_s; });
  if (point.update_s.median > 0 && point.which.global_batch() > 0)  // of the update that the tables show
    point.images_per_s.median = static_cast<double>(point.which.global_batch()) / point.update_s.median;
  for (double RankTime::*part : kParts)
    point.times.*part = spread_over(runs, [&](const CaseResult& r) { return mean_of_ranks(r, part); }).median;
  point.loads = loads_of(runs);
  point.sent_bytes = median_over(runs, &CaseResult::sent_bytes);
  point.memory_bytes = median_over(runs, &CaseResult::memory_bytes);
  const Spread heat = spread_over(runs, warmest);
  if (heat.count > 0) point.temperature = heat.max;
  point.epoch_s = spread_over(runs, mean_epoch_s);
  point.top1 = spread_over(runs, last_top1);
  point.epochs = mean_epochs(runs);
  point.message_s = spread_over(runs, [](const CaseResult& r) { return r.message_s; });
  return point;
}

}  // namespace

double StudyPoint::exposed_share() const {
  return times.total_s() > 0 ? times.exposed_s / times.total_s() : 0;
}

double StudyPoint::predicted_error() const {
  return update_s.count > 0 ? predicted_s / update_s.median - 1 : kUnknown;
}

bool takes_turns(const StudyCase& one, const StudyConfig& config, int cores) {
  // Nodes of their own have cores of their own, unless they are namespaces of this host.
  const bool here = one.transport != "nodes" || config.namespaces > 0;
  return here && parse_device_name(one.device).entry->on_host &&
         one.ranks * std::max<int64_t>(config.threads, 1) > cores;
}

std::vector<StudyPoint> points_of(const std::vector<CaseResult>& results, const StudyConfig& config,
                                  int cores) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const CaseResult*>> by_point;
  for (const CaseResult& result : results) {
    auto& runs = by_point[result.which.point()];
    if (runs.empty()) order.push_back(result.which.point());
    runs.push_back(&result);
  }
  std::vector<StudyPoint> points;
  for (const std::string& name : order) {
    points.push_back(point_of(by_point.at(name)));
    points.back().oversubscribed = takes_turns(points.back().which, config, cores);
  }
  return points;
}

}  // namespace vitrail
