// A study as text tables.
#include <cmath>

#include "base/error.h"
#include "measure/study/study.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {

std::string percent(double share) {
  return std::isfinite(share) ? strf("%.1f %%", 100 * share) : "";
}

std::string off_text(double share) {
  return std::isfinite(share) ? strf("%+.1f %%", 100 * share) : "";
}

std::string spread_text(const Spread& s) {
  if (s.count < 2) return "";
  return strf("%.1f %%", 100 * (s.max - s.min) / s.median);
}

std::string bytes_text(double bytes) {
  return std::isfinite(bytes) ? format_bytes(static_cast<uint64_t>(bytes)) : "";
}

std::vector<std::string> cells_of(const CurveRow& row) {
  const StudyPoint& p = *row.point;
  const double total = p.times.total_s();
  return {std::to_string(p.which.ranks) + (p.oversubscribed ? " *" : ""),
          std::to_string(p.which.global_batch()),
          format_seconds(p.update_s.median),
          spread_text(p.update_s),
          std::isfinite(p.predicted_s) ? format_seconds(p.predicted_s) : "",
          off_text(p.predicted_error()),
          format_si(p.images_per_s.median),
          percent(p.times.compute_s / total),
          percent(p.times.exposed_s / total),
          percent(p.times.imbalance_s / total),
          percent(p.times.hidden_s / total),
          percent(p.times.data_wait_s / total),
          format_seconds(row.seconds),
          strf("%.2f", row.speedup),
          percent(row.efficiency),
          std::isfinite(row.predicted_speedup) ? strf("%.2f", row.predicted_speedup) : "",
          percent(row.predicted_efficiency),
          bytes_text(p.memory_bytes),
          p.top1.count > 0 ? percent(p.top1.median) : "",
          std::isfinite(p.temperature) ? strf("%.0f", p.temperature) : ""};
}

std::string aligned(const StudyTable& given) {
  Table table(given.columns);
  for (const auto& row : given.rows) table.row(row);
  return table.text(2);
}

}  // namespace

StudyTable curve_table(const Curve& curve) {
  constexpr const char* kTitles[] = {"ranks",
                                     "batch",
                                     "update",
                                     "spread",
                                     "predicted",
                                     "off",
                                     "images/s",
                                     "compute",
                                     "exposed",
                                     "of it imbalance",
                                     "hidden",
                                     "data",
                                     "epoch",
                                     "speed-up",
                                     "efficiency",
                                     "predicted speed-up",
                                     "predicted efficiency",
                                     "memory",
                                     "accuracy",
                                     "deg C"};
  std::vector<std::vector<std::string>> all;
  for (const CurveRow& row : curve.rows) all.push_back(cells_of(row));
  StudyTable table{.columns = {}, .rows = std::vector<std::vector<std::string>>(all.size())};
  for (size_t i = 0; i < std::size(kTitles); ++i) {
    bool said = false;
    for (const auto& row : all) said = said || !row[i].empty();
    if (!said) continue;
    table.columns.push_back({kTitles[i], Align::kRight});
    for (size_t r = 0; r < all.size(); ++r) table.rows[r].push_back(all[r][i]);
  }
  return table;
}

std::string fit_text(const Curve& c) {
  if (c.rows.size() < 2) return "";
  const char* exact = c.rows.size() == 2 ? "; any law fits two points" : "";
  if (c.gustafson && c.gustafson->serial_share > 1)
    return "Gustafson's law does not apply: more ranks do less than one";
  if (c.gustafson)
    return strf("Gustafson: %.2f %% of the work is not shared out (off by %.3f in speed-up%s)",
                100 * c.gustafson->serial_share, c.gustafson->error, exact);
  if (!c.amdahl) return "";
  if (c.amdahl->serial_share > 1) return "Amdahl's law does not apply: more ranks take longer than one";
  const double most = c.amdahl->most_speedup();
  return strf("Amdahl: %.2f %% of the work is serial, %s (off by %.2f %% of the time on one rank%s)",
              100 * c.amdahl->serial_share,
              std::isfinite(most) ? strf("at most %.1f times as fast on any number of ranks", most).c_str()
                                  : "no limit is seen",
              100 * c.amdahl->error, exact);
}

StudyTable message_table(const Study& study) {
  StudyTable table{{{"all-reduce over"},
                    {"ranks", Align::kRight},
                    {"alpha", Align::kRight},
                    {"1 / beta", Align::kRight},
                    {"off by at most", Align::kRight}},
                   {}};
  for (const MessageCurve& m : study.messages)
    if (m.fit)
      table.rows.push_back({m.transport, std::to_string(m.ranks), format_seconds(m.fit->alpha_s),
                            m.fit->bytes_per_s() > 0 ? format_si(m.fit->bytes_per_s()) + "B/s" : "not seen",
                            percent(m.fit->error)});
  return table;
}

StudyTable prediction_table(const Study& study) {
  StudyTable table{{{"predicted against measured"},
                    {"updates", Align::kRight},
                    {"median off", Align::kRight},
                    {"worst off", Align::kRight},
                    {"of"}},
                   {}};
  for (const PredictionError& e : prediction_errors(study.points))
    table.rows.push_back({e.of, std::to_string(e.off.count), percent(e.off.median),
                          off_text(e.worst->predicted_error()), e.worst->which.point()});
  return table;
}

std::string prediction_text(const Study& study) {
  const std::string& by = study.prediction.by;
  return by.empty() ? "" : "Predicted by " + by;
}

std::string star_text(const Study& study) {
  for (const Curve& curve : study.curves)
    for (const CurveRow& row : curve.rows)
      if (row.point->oversubscribed) return "* more threads than cores: such ranks take turns";
  return "";
}

std::string to_text(const Study& study) {
  std::string text;
  for (const Curve& curve : study.curves) {
    text += strf("\n%s, %s on %s\n", curve.title().c_str(), curve.model.c_str(), curve.device.c_str());
    text += aligned(curve_table(curve));
    if (const std::string fit = fit_text(curve); !fit.empty()) text += "  " + fit + "\n";
  }
  if (const StudyTable predicted = prediction_table(study); !predicted.rows.empty())
    text += "\n" + prediction_text(study) + "\n" + aligned(predicted);
  for (const std::string& note : study.prediction.notes) text += "\n" + note + "\n";
  if (const StudyTable messages = message_table(study); !messages.rows.empty())
    text += "\nTime of a message by its size, alpha + beta x bytes\n" + aligned(messages);
  if (const std::string star = star_text(study); !star.empty()) text += "\n" + star + "\n";
  for (const StudyPoint& point : study.points)
    if (point.failed > 0)
      text += strf("\n%s failed %s: %s\n", point.which.point().c_str(),
                   format_count(static_cast<int64_t>(point.failed), "time").c_str(), point.error.c_str());
  if (study.advice.batch > 0) text += "\nRecommended: " + study.advice.why + "\n";
  return text.empty() ? text : text.substr(1);
}

}  // namespace vitrail
