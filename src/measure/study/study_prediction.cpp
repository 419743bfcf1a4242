#include "measure/study/study_prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "telemetry/metrics_file.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

PredictedPoint predicted_from(const Json& json, const std::string& place) {
  PredictedPoint p{metrics_text(json, "model"), metrics_text(json, "device", "cpu"),
                   metrics_text(json, "transport", "threads")};
  const double ranks = metrics_number(json, "ranks"), batch = metrics_number(json, "batch");
  p.update_s = metrics_number(json, "update_s");
  const bool whole = ranks >= 1 && ranks <= 1e9 && batch >= 1 && batch <= 1e9;
  if (!whole || ranks != std::floor(ranks) || batch != std::floor(batch) || !(p.update_s > 0) ||
      !std::isfinite(p.update_s))
    throw Error(ErrorKind::kData, place + " is no predicted point",
                R"({"model", "device", "transport", "ranks": 2, "batch": 16, "update_s": 0.1})");
  p.ranks = static_cast<int64_t>(ranks);
  p.batch = static_cast<int64_t>(batch);
  return p;
}

PredictionError error_of(const std::string& of, const std::vector<const StudyPoint*>& points) {
  PredictionError error{.of = of, .off = {}, .worst = points.front()};
  std::vector<double> off;
  for (const StudyPoint* p : points) {
    off.push_back(std::abs(p->predicted_error()));
    if (off.back() > std::abs(error.worst->predicted_error())) error.worst = p;
  }
  error.off = spread_of(off);
  return error;
}

}  // namespace

std::vector<PredictedPoint> read_predicted(const std::string& path) {
  constexpr size_t kMostBytes = size_t{16} << 20;
  const Json json = parse_json(read_file(path, kMostBytes), path);
  VT_REQUIRE(json.is_array(), ErrorKind::kData, "%s holds %s, no list of predicted points", path.c_str(),
             json.type_name());
  std::vector<PredictedPoint> points;
  for (const Json& one : json)
    points.push_back(predicted_from(one, strf("%s[%zu]", path.c_str(), points.size())));
  return points;
}

double StudyPrediction::update_s(const StudyCase& one) const {
  for (const PredictedPoint& p : points)
    if (p.model == one.model && p.device == one.device && p.ranks == one.ranks && p.batch == one.batch &&
        (p.transport == one.transport || one.ranks == 1))
      return p.update_s;
  return kUnknown;
}

std::vector<PredictionError> prediction_errors(const std::vector<StudyPoint>& points) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const StudyPoint*>> by_transport;
  std::vector<const StudyPoint*> all;
  for (const StudyPoint& p : points) {
    if (!std::isfinite(p.predicted_error())) continue;
    const std::string of = p.which.model + " on " + p.which.device + ", " + p.which.transport;
    auto& group = by_transport[of];
    if (group.empty()) order.push_back(of);
    group.push_back(&p);
    all.push_back(&p);
  }
  std::vector<PredictionError> errors;
  errors.reserve(order.size() + 1);
  for (const std::string& of : order) errors.push_back(error_of(of, by_transport.at(of)));
  if (errors.size() > 1) errors.push_back(error_of("all", all));
  return errors;
}

ordered_json to_json(const StudyPrediction& prediction, const std::vector<StudyPoint>& points) {
  ordered_json json = {{"by", prediction.by}, {"notes", prediction.notes}};
  for (const PredictionError& error : prediction_errors(points))
    json["errors"].push_back({{"of", error.of},
                              {"updates", error.off.count},
                              {"median_percent", 100 * error.off.median},
                              {"worst_percent", 100 * error.worst->predicted_error()},
                              {"worst", error.worst->which.point()}});
  return json;
}

}  // namespace vitrail
