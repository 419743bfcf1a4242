// Points of a study set against each other: speed-up, efficiency, the laws that fit them, and the batch to
// take.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "measure/study/points.h"
#include "telemetry/format.h"

namespace vitrail {

namespace {

struct Wanted {
  Scaling scaling;
  std::string model, device, transport;
  int64_t batch;
};

// The batch of a rank, and the share of the data, with which a point belongs to a curve.
bool belongs(const StudyPoint& point, const Wanted& want, double weak_fraction) {
  const StudyCase& c = point.which;
  if (c.kind == CaseKind::kAllReduce || !point.done() || c.model != want.model || c.device != want.device)
    return false;
  if (c.transport != want.transport && c.transport != "alone") return false;
  const int64_t batch = want.scaling == Scaling::kStrongGlobal ? c.global_batch() : c.batch;
  const double fraction = want.scaling == Scaling::kWeak && c.kind == CaseKind::kTrain ? weak_fraction : 1;
  return batch == want.batch && std::abs(c.fraction - fraction) < 1e-9;
}

// The updates of an epoch: of a training run as it counted them, else those that the images make.
double updates_of(const StudyPoint& point, Scaling scaling, const StudyConfig& config, int64_t most_ranks) {
  if (!point.epochs.empty()) return point.epochs.back().updates;
  double images = static_cast<double>(config.images);
  if (scaling == Scaling::kWeak)
    images *= static_cast<double>(point.which.ranks) / static_cast<double>(most_ranks);
  return images / static_cast<double>(point.which.global_batch());
}

// Seconds of an epoch: measured, or those of an update times the number of updates.
CurveRow timed_row(const StudyPoint& point, Scaling scaling, const StudyConfig& config, int64_t most_ranks) {
  const double updates = updates_of(point, scaling, config, most_ranks);
  CurveRow row{.point = &point, .predicted_s = updates * point.predicted_s};
  if (point.epoch_s.count > 0) {
    row.seconds = point.epoch_s.median;
    row.low_s = point.epoch_s.min;
    row.high_s = point.epoch_s.max;
    return row;
  }
  row.seconds = updates * point.update_s.median;
  row.low_s = updates * point.update_s.min;
  row.high_s = updates * point.update_s.max;
  return row;
}

void compare_rows(Curve& curve) {
  const CurveRow first = curve.rows.front();
  const double fewest = static_cast<double>(first.point->which.ranks);
  std::vector<ScalingPoint> times, speedups;
  for (CurveRow& row : curve.rows) {
    const double ranks = static_cast<double>(row.point->which.ranks);
    const double work = curve.scaling == Scaling::kWeak ? ranks : fewest;  // of one rank
    row.speedup = first.seconds / row.seconds * work;
    row.efficiency = row.speedup / ranks;
    row.predicted_speedup = first.predicted_s / row.predicted_s * work;
    row.predicted_efficiency = row.predicted_speedup / ranks;
    times.push_back({ranks, row.seconds});
    speedups.push_back({ranks, row.speedup});
  }
  if (curve.scaling == Scaling::kWeak) {
    if (curve.rows.size() > 1) curve.gustafson = fit_gustafson(speedups);
  } else {
    curve.amdahl = fit_amdahl(times);
  }
}

std::optional<Curve> curve_of(const std::vector<StudyPoint>& points, const StudyConfig& config,
                              const Wanted& want) {
  const std::vector<int64_t> all = integers_of(config.ranks);
  const int64_t most = *std::max_element(all.begin(), all.end());
  Curve curve{want.scaling, want.model, want.device, want.transport, want.batch, {}, {}, {}};
  for (const StudyPoint& point : points)
    if (belongs(point, want, static_cast<double>(point.which.ranks) / static_cast<double>(most)))
      curve.rows.push_back(timed_row(point, want.scaling, config, most));
  std::sort(curve.rows.begin(), curve.rows.end(),
            [](const CurveRow& a, const CurveRow& b) { return a.point->which.ranks < b.point->which.ranks; });
  if (curve.rows.empty()) return std::nullopt;
  compare_rows(curve);
  return curve;
}

std::vector<Scaling> scalings_of(const StudyConfig& config) {
  std::vector<Scaling> list;
  if (config.strong == StrongScaling::kGlobal) list.push_back(Scaling::kStrongGlobal);
  if (config.strong == StrongScaling::kPerRank) list.push_back(Scaling::kStrongPerRank);
  if (config.weak) list.push_back(Scaling::kWeak);
  return list;
}

}  // namespace

std::string Curve::title() const {
  return strf("%s %lld, %s", enum_name(scaling), static_cast<long long>(batch), transport.c_str());
}

std::vector<Curve> curves_of(const std::vector<StudyPoint>& points, const StudyConfig& config) {
  std::vector<Curve> curves;
  for (const Scaling scaling : scalings_of(config))
    for (const std::string& model : config.models)
      for (const std::string& device : config.device)
        for (const std::string& transport : config.transports)
          for (const int64_t batch : integers_of(config.batches))
            if (auto curve = curve_of(points, config, {scaling, model, device, transport, batch}))
              curves.push_back(std::move(*curve));
  return curves;
}

std::vector<MessageCurve> message_curves_of(const std::vector<StudyPoint>& points) {
  std::vector<MessageCurve> curves;
  for (const StudyPoint& point : points) {
    const StudyCase& c = point.which;
    if (c.kind != CaseKind::kAllReduce || !point.done()) continue;
    const auto same = [&](const MessageCurve& m) { return m.transport == c.transport && m.ranks == c.ranks; };
    auto found = std::find_if(curves.begin(), curves.end(), same);
    if (found == curves.end()) found = curves.insert(curves.end(), {c.transport, c.ranks, {}, {}});
    found->points.push_back(&point);
  }
  for (MessageCurve& curve : curves) {
    std::vector<MessageTime> times;
    for (const StudyPoint* p : curve.points) times.push_back({p->which.megabytes * 1e6, p->message_s.median});
    curve.fit = fit_latency(times);
  }
  return curves;
}

namespace {

constexpr double kSpeedLost = 0.05, kAccuracyLost = 0.01;

// The points among which a batch is chosen: the first model, on the most ranks, over all data.
struct BatchChoice {
  int64_t ranks = 0;
  double fastest = 0, best = kUnknown;    // images a second, accuracy
  std::vector<const StudyPoint*> points;  // small batches first, of one batch the fastest first

  explicit BatchChoice(const std::vector<StudyPoint>& all) {
    for (const StudyPoint& p : all)
      if (p.update_s.count > 0) ranks = std::max(ranks, p.which.ranks);
    for (const StudyPoint& p : all) {
      if (p.update_s.count == 0 || p.which.ranks != ranks || p.which.fraction < 1) continue;
      if (!points.empty() && p.which.model != points[0]->which.model) continue;
      points.push_back(&p);
      fastest = std::max(fastest, p.images_per_s.median);
      if (p.top1.count > 0 && !(p.top1.median <= best)) best = p.top1.median;
    }
    std::sort(points.begin(), points.end(), [](const StudyPoint* a, const StudyPoint* b) {
      return a->which.batch != b->which.batch ? a->which.batch < b->which.batch
                                              : a->images_per_s.median > b->images_per_s.median;
    });
  }
  bool accurate(const StudyPoint& p) const {
    return p.top1.count == 0 || p.top1.median >= best - kAccuracyLost;
  }
  bool fast(const StudyPoint& p) const { return p.images_per_s.median >= (1 - kSpeedLost) * fastest; }
};

std::string rate_text(double images_per_s) {
  return images_per_s < 1e4 ? strf("%.4g", images_per_s) : strf("%.0f", images_per_s);
}

// Returns "; fewer are faster: 1 rank with ..."; nothing where no fewer are.
std::string fewer_text(const StudyPoint& chosen, const std::vector<StudyPoint>& all) {
  const StudyPoint* best = &chosen;
  for (const StudyPoint& p : all)
    if (p.update_s.count > 0 && p.which.model == chosen.which.model && p.which.fraction >= 1 &&
        p.which.ranks < chosen.which.ranks && p.images_per_s.median > best->images_per_s.median)
      best = &p;
  if (best == &chosen) return "";
  return strf("; fewer are faster: %s with %lld images an update, %s images a second",
              format_count(best->which.ranks, "rank").c_str(),
              static_cast<long long>(best->which.global_batch()),
              rate_text(best->images_per_s.median).c_str());
}

std::string reason_for(const StudyPoint& p, const BatchChoice& choice) {
  std::string why =
      strf("%lld images an update by %s (%s): the fewest %s", static_cast<long long>(p.which.global_batch()),
           format_count(choice.ranks, "rank").c_str(), p.which.transport.c_str(),
           choice.fast(p) ? "that lose no more than 5 % of the best speed"
                          : "that lose no more than a point of the best accuracy");
  why += strf("; %s images a second of %s, %.1f %% of an update is exposed communication, %s a rank",
              rate_text(p.images_per_s.median).c_str(), rate_text(choice.fastest).c_str(),
              100 * p.exposed_share(),
              format_bytes(static_cast<uint64_t>(std::max(0.0, p.memory_bytes))).c_str());
  if (p.top1.count > 0)
    why += strf("; accuracy %.2f %%, the best %.2f %%", 100 * p.top1.median, 100 * choice.best);
  return why;
}

}  // namespace

Advice recommended_batch(const std::vector<StudyPoint>& points) {
  const BatchChoice choice(points);
  const StudyPoint* found = nullptr;
  for (const StudyPoint* p : choice.points)
    if (!found && choice.accurate(*p) && choice.fast(*p)) found = p;
  for (const StudyPoint* p : choice.points)
    if (!found && choice.accurate(*p)) found = p;
  if (!found) return {};
  return {found->which.global_batch(), choice.ranks, reason_for(*found, choice) + fewer_text(*found, points)};
}

}  // namespace vitrail
