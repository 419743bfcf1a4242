// Figures over numbers of ranks.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "measure/study/study_figures.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {

std::vector<double> rank_ticks(const Study& study) {
  std::vector<double> ticks;
  for (const int64_t ranks : integers_of(study.config.ranks)) ticks.push_back(static_cast<double>(ranks));
  std::sort(ticks.begin(), ticks.end());
  return ticks;
}

bool is_weak(const Curve& curve) {
  return curve.scaling == Scaling::kWeak;
}

std::string series_name(const Curve& curve) {
  return strf("%s, batch %lld%s", curve.transport.c_str(), static_cast<long long>(curve.batch),
              curve.scaling == Scaling::kStrongGlobal ? "" : " a rank");
}

std::vector<const Curve*> curves_on(const Side& side, bool weak) {
  std::vector<const Curve*> found;
  for (const Curve& curve : side.study.curves)
    if (curve.model == side.model && curve.device == side.device && is_weak(curve) == weak &&
        curve.rows.size() > 1)
      found.push_back(&curve);
  return found;
}

double ranks_of(const CurveRow& row) {
  return static_cast<double>(row.point->which.ranks);
}

// Adds the line of a curve and, where it has them, the dashed one of its predicted values.
template <typename Measured>
void add_curve(const Curve& curve, const Measured& measured, double CurveRow::*predicted, LineChart& chart) {
  Series line{.name = series_name(curve)};
  Series expected{.name = "predicted: " + line.name, .points = {}, .dashed = true, .follows = true};
  for (const CurveRow& row : curve.rows) {
    line.points.push_back(measured(row));
    if (std::isfinite(row.*predicted)) expected.points.push_back({ranks_of(row), row.*predicted});
  }
  chart.series.push_back(line);
  if (!expected.points.empty()) chart.series.push_back(expected);
}

void add_times(const Side& side, bool weak, std::vector<StudyFigure>& figures) {
  LineChart chart{.title = side.title(weak ? "Weak scaling" : "Strong scaling"),
                  .x_label = "ranks",
                  .y_label = "seconds of an epoch",
                  .from_zero = true,
                  .x_ticks = rank_ticks(side.study)};
  for (const Curve* curve : curves_on(side, weak))
    add_curve(
        *curve,
        [](const CurveRow& row) {
          return Point{ranks_of(row), row.seconds, row.low_s, row.high_s};
        },
        &CurveRow::predicted_s, chart);
  if (!chart.series.empty()) figures.push_back({side.file(weak ? "weak" : "strong"), line_chart(chart)});
}

void add_speedups(const Side& side, bool weak, std::vector<StudyFigure>& figures) {
  const std::vector<double> ticks = rank_ticks(side.study);
  LineChart chart{.title = side.title(weak ? "Scaled speed-up (weak)" : "Speed-up against ideal (strong)"),
                  .x_label = "ranks",
                  .y_label = "times as fast as one rank",
                  .from_zero = true,
                  .x_ticks = ticks};
  const auto measured = [](const CurveRow& row) {
    return Point{ranks_of(row), row.speedup, row.speedup * row.seconds / row.high_s,
                 row.speedup * row.seconds / row.low_s};
  };
  for (const Curve* curve : curves_on(side, weak))
    add_curve(*curve, measured, &CurveRow::predicted_speedup, chart);
  if (chart.series.empty()) return;
  Series ideal{.name = "ideal", .points = {}, .dashed = true};
  for (const double ranks : ticks) ideal.points.push_back({ranks, ranks});
  chart.series.push_back(ideal);
  figures.push_back({side.file(weak ? "weak-speedup" : "speedup"), line_chart(chart)});
}

// Transports side by side on one batch, the largest: ranks of one host against those of several.
void add_transports(const Side& side, std::vector<StudyFigure>& figures) {
  if (side.study.config.transports.size() < 2) return;
  BarChart chart{
      .title = side.title("Transports side by side"), .x_label = "ranks", .y_label = "images a second"};
  int64_t batch = 0;
  for (const Curve& c : side.study.curves) batch = std::max(batch, c.batch);
  for (const double ranks : rank_ticks(side.study)) chart.groups.push_back(strf("%g", ranks));
  for (const Curve& curve : side.study.curves) {
    if (curve.model != side.model || curve.device != side.device || curve.batch != batch ||
        curve.scaling != side.study.curves.front().scaling)
      continue;
    BarSeries bars{.name = curve.transport, .values = std::vector<double>(chart.groups.size(), NAN)};
    bars.low = bars.high = bars.values;
    for (const CurveRow& row : curve.rows) {
      const std::string group = std::to_string(row.point->which.ranks);
      const auto at = static_cast<size_t>(std::find(chart.groups.begin(), chart.groups.end(), group) -
                                          chart.groups.begin());
      bars.values[at] = row.point->images_per_s.median;
      bars.low[at] = row.point->images_per_s.min;
      bars.high[at] = row.point->images_per_s.max;
    }
    chart.series.push_back(bars);
  }
  if (chart.series.size() > 1) figures.push_back({side.file("transports"), bar_chart(chart)});
}

}  // namespace

void add_scaling_figures(const Side& side, std::vector<StudyFigure>& figures) {
  for (const bool weak : {false, true}) {
    add_times(side, weak, figures);
    add_speedups(side, weak, figures);
  }
  add_transports(side, figures);
}

}  // namespace vitrail
