#include "measure/study/study.h"

#include "base/json_text.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

ordered_json spread_json(const Spread& s) {
  if (s.count == 0) return {};
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}, {"count", s.count}};
}

ordered_json epochs_json(const StudyPoint& p) {
  ordered_json list = ordered_json::array();
  for (const EpochResult& e : p.epochs)
    list.push_back({{"epoch", e.epoch},
                    {"seconds", finite_or_null(e.seconds)},
                    {"train_loss", finite_or_null(e.train_loss)},
                    {"eval_loss", finite_or_null(e.eval_loss)},
                    {"top1", finite_or_null(e.top1)}});
  return list;
}

ordered_json point_json(const StudyPoint& p) {
  const StudyCase& c = p.which;
  ordered_json json = {{"kind", enum_name(c.kind)}, {"transport", c.transport},
                       {"ranks", c.ranks},          {"failed", p.failed},
                       {"error", p.error},          {"oversubscribed", p.oversubscribed}};
  if (c.kind == CaseKind::kAllReduce) {
    json.update({{"megabytes", c.megabytes}, {"seconds", spread_json(p.message_s)}});
    return json;
  }
  json.update({{"model", c.model},
               {"device", c.device},
               {"batch", c.global_batch()},
               {"batch_a_rank", c.batch},
               {"fraction", c.fraction},
               {"update_s", spread_json(p.update_s)},
               {"images_per_s", spread_json(p.images_per_s)},
               {"compute_s", p.times.compute_s},
               {"exposed_s", p.times.exposed_s},
               {"hidden_s", p.times.hidden_s},
               {"data_wait_s", p.times.data_wait_s},
               {"imbalance_s", p.times.imbalance_s},
               {"rank_loads", p.loads},
               {"sent_bytes", finite_or_null(p.sent_bytes)},
               {"memory_bytes", finite_or_null(p.memory_bytes)},
               {"temperature", finite_or_null(p.temperature)},
               {"epoch_s", spread_json(p.epoch_s)},
               {"top1", spread_json(p.top1)},
               {"epochs", epochs_json(p)},
               {"predicted_update_s", finite_or_null(p.predicted_s)},
               {"predicted_error_percent", finite_or_null(100 * p.predicted_error())}});
  return json;
}

ordered_json fit_json(const std::optional<ShareFit>& fit) {
  if (!fit) return {};
  return {{"serial_share", fit->serial_share},
          {"most_speedup", finite_or_null(fit->most_speedup())},
          {"error", fit->error}};
}

ordered_json curve_json(const Curve& c) {
  ordered_json rows = ordered_json::array();
  for (const CurveRow& row : c.rows)
    rows.push_back({{"ranks", row.point->which.ranks},
                    {"epoch_s", row.seconds},
                    {"epoch_low_s", row.low_s},
                    {"epoch_high_s", row.high_s},
                    {"speedup", row.speedup},
                    {"efficiency", row.efficiency},
                    {"exposed_share", row.point->exposed_share()},
                    {"oversubscribed", row.point->oversubscribed},
                    {"predicted_epoch_s", finite_or_null(row.predicted_s)},
                    {"predicted_speedup", finite_or_null(row.predicted_speedup)},
                    {"predicted_efficiency", finite_or_null(row.predicted_efficiency)},
                    {"predicted_error_percent", finite_or_null(100 * row.point->predicted_error())}});
  return {{"scaling", enum_name(c.scaling)},
          {"model", c.model},
          {"device", c.device},
          {"transport", c.transport},
          {"batch", c.batch},
          {"rows", rows},
          {"amdahl", fit_json(c.amdahl)},
          {"gustafson", fit_json(c.gustafson)}};
}

ordered_json message_json(const MessageCurve& m) {
  ordered_json json = {{"transport", m.transport}, {"ranks", m.ranks}, {"sizes", ordered_json::array()}};
  for (const StudyPoint* p : m.points)
    json["sizes"].push_back({{"megabytes", p->which.megabytes}, {"seconds", p->message_s.median}});
  if (m.fit)
    json["fit"] = {{"alpha_s", m.fit->alpha_s},
                   {"beta_s_per_byte", m.fit->beta_s_per_byte},
                   {"bytes_per_s", m.fit->bytes_per_s()},
                   {"error", m.fit->error}};
  return json;
}

std::vector<StudyPoint> with_prediction(std::vector<StudyPoint> points, const StudyPrediction& prediction) {
  for (StudyPoint& point : points) point.predicted_s = prediction.update_s(point.which);
  return points;
}

}  // namespace

Study::Study(StudyConfig of, ordered_json head, int cores, std::vector<CaseResult> measured,
             StudyPrediction before)
    : config(std::move(of)),
      header(std::move(head)),
      results(std::move(measured)),
      prediction(std::move(before)),
      points(with_prediction(points_of(results, config, cores), prediction)),
      curves(curves_of(points, config)),
      messages(message_curves_of(points)),
      advice(recommended_batch(points)) {}

size_t Study::failed() const {
  size_t count = 0;
  for (const CaseResult& result : results) count += result.done() ? 0 : 1;
  return count;
}

ordered_json to_json(const Study& s) {
  ordered_json json = s.header;
  json["recommended"] = {{"batch", s.advice.batch}, {"ranks", s.advice.ranks}, {"why", s.advice.why}};
  json["failed"] = s.failed();
  for (const Curve& curve : s.curves) json["curves"].push_back(curve_json(curve));
  for (const MessageCurve& curve : s.messages) json["all_reduce"].push_back(message_json(curve));
  for (const StudyPoint& point : s.points) json["points"].push_back(point_json(point));
  for (const StudyCase& one : shuffled(list_cases(s.config), s.config.seed))
    json["order"].push_back(one.name());
  if (!s.prediction.by.empty() || !s.prediction.notes.empty())
    json["prediction"] = to_json(s.prediction, s.points);
  for (const PredictedPoint& p : s.prediction.points)
    json["predicted"].push_back({{"model", p.model},
                                 {"device", p.device},
                                 {"transport", p.transport},
                                 {"ranks", p.ranks},
                                 {"batch", p.batch},
                                 {"update_s", p.update_s}});
  return json;
}

}  // namespace vitrail
