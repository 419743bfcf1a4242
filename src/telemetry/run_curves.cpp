#include "telemetry/run_curves.h"

#include <map>

#include "telemetry/metrics_file.h"

namespace vitrail {

namespace {
constexpr double kSmoothShare = 0.02;  // the smooth line follows this share of the points
constexpr size_t kSmoothFrom = 100;    // fewer points are shown as they are

// The chart of each number of a line, in the order the report shows them.
struct CurveRow {
  const char *kind, *key;
  size_t chart;
  const char* series;
  double scale;
};
enum Chart : size_t { kLoss, kAccuracy, kLr, kSpeed, kWait, kGradient, kCharts };
constexpr CurveRow kRows[] = {{"train", "loss", kLoss, "train", 1},
                              {"eval", "loss", kLoss, "eval", 1},
                              {"eval", "top1", kAccuracy, "top-1", 100},
                              {"eval", "top5", kAccuracy, "top-5", 100},
                              {"eval", "map", kAccuracy, "mAP", 100},
                              {"eval", "f1", kAccuracy, "F1", 100},
                              {"train", "lr", kLr, "learning rate", 1},
                              {"train", "img_per_s", kSpeed, "images/s", 1},
                              {"train", "data_wait_s", kWait, "waiting", 100},
                              {"train", "grad_norm", kGradient, "norm", 1}};

std::vector<LineChart> empty_charts() {
  return {{"Loss", "step", "", {}, false},
          {"Accuracy", "step", "% of the evaluation set", {}, false},
          {"Learning rate", "step", "", {}, false},
          {"Throughput", "step", "images/s", {}, false},
          {"Waiting for data", "step", "% of the time", {}, false},
          {"Gradient norm", "step", "", {}, true}};
}

double value_of(const Json& line, const CurveRow& row) {
  const double value = metrics_number(line, row.key) * row.scale;
  // Seconds become a share of the time the line covers.
  return row.chart == kWait ? value / metrics_number(line, "interval_s") : value;
}

// Evaluations of averaged weights are a series of their own.
std::string series_name(const Json& line, const CurveRow& row) {
  const std::string weights = metrics_text(line, "weights", "model");
  return weights == "model" ? row.series : row.series + (" (" + weights + ")");
}

RunEvent event_of(const Json& line) {
  return {metrics_text(line, "what"), metrics_text(line, "text"), line["step"].get<int64_t>(),
          metrics_number(line, "time")};
}

// A noisy series is drawn pale, with its running average in front.
void add_series(LineChart& chart, const std::string& name, std::vector<Point> points, bool noisy) {
  if (noisy && points.size() >= kSmoothFrom) {
    std::vector<Point> calm = smooth(points, kSmoothShare * static_cast<double>(points.size()));
    chart.series.push_back({name, std::move(points), true});
    points = std::move(calm);
  }
  chart.series.push_back({name, std::move(points), false});
}
}  // namespace

RunHistory read_run_history(const std::string& metrics_path) {
  RunHistory history;
  std::map<std::pair<size_t, std::string>, std::vector<Point>> points;  // by row and series
  for_each_metrics_line(metrics_path, [&](const Json& line) {
    const std::string kind = metrics_text(line, "kind");
    if (kind == "event") history.events.push_back(event_of(line));
    for (size_t r = 0; r < std::size(kRows); ++r)
      if (kind == kRows[r].kind && line.contains(kRows[r].key))
        points[{r, series_name(line, kRows[r])}].push_back(
            {line["step"].get<double>(), value_of(line, kRows[r])});
  });
  std::vector<LineChart> charts = empty_charts();
  for (auto& [place, list] : points) {
    const CurveRow& row = kRows[place.first];
    const bool noisy = row.chart == kLoss && std::string(row.kind) == "train";
    add_series(charts[row.chart], place.second, std::move(list), noisy || row.chart == kGradient);
  }
  charts[kSpeed].from_zero = charts[kWait].from_zero = true;
  for (LineChart& chart : charts)
    if (!chart.series.empty()) history.curves.push_back(std::move(chart));
  return history;
}

}  // namespace vitrail
