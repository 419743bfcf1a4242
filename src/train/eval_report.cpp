#include "train/eval_report.h"

#include <algorithm>

#include "base/json_text.h"
#include "base/text.h"
#include "io/cards/card_text.h"
#include "telemetry/format.h"
#include "telemetry/report.h"
#include "telemetry/table.h"
#include "train/run_report.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;
constexpr size_t kConfusedPairs = 10;

const std::string& class_name(const EvalSubject& s, int64_t number) {
  return s.dataset.classes()[static_cast<size_t>(number)];
}

ordered_json classes_json(const EvalSubject& s) {
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; i < s.dataset.classes().size(); ++i) {
    ordered_json row = {{"name", s.dataset.classes()[i]}};
    if (s.result.confusion) {
      const ClassCounts& c = s.result.confusion->of(static_cast<int64_t>(i));
      row.update({{"count", c.count},
                  {"top1", c.recall()},
                  {"top5", c.top5_share()},
                  {"precision", c.precision()},
                  {"f1", c.f1()}});
    } else {
      const LabelScores& c = s.result.multi_label->classes[i];
      row.update({{"count", c.positives},
                  {"ap", c.average_precision},
                  {"precision", c.precision},
                  {"recall", c.recall},
                  {"f1", c.f1}});
    }
    rows.push_back(row);
  }
  return rows;
}

ordered_json images_json(const EvalSubject& s, const std::vector<SampleResult>& images) {
  ordered_json rows = ordered_json::array();
  for (const SampleResult& one : images)
    rows.push_back({{"image", shown(s.dataset.sample_name(one.sample))},
                    {"label", class_name(s, one.label)},
                    {"predicted", class_name(s, one.predicted)},
                    {"prob", one.probability},
                    {"loss", one.loss}});
  return rows;
}

// Shares of all images, for the comparison of two models.
struct Against {
  double top1, difference, agreement;
};
Against against_of(const EvalSubject& s) {
  const auto count = static_cast<double>(std::max<int64_t>(s.result.count, 1));
  const double top1 = static_cast<double>(s.result.against->right) / count;
  return {top1, s.result.top1() - top1, static_cast<double>(s.result.against->equal) / count};
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs figures(const EvalSubject& s) {
  const EvalStatus status = s.result.status(0, 0, "model");
  Pairs pairs = {{"images", format_integer(s.result.count)}};
  const auto add = [&](const char* name, const std::optional<double>& share) {
    if (share) pairs.emplace_back(name, format_percent(*share));
  };
  add("top-1", status.top1);
  add("top-5", status.top5);
  add("mean average precision", status.mean_ap);
  add("F1", status.macro_f1);
  pairs.emplace_back("loss", format_significant(s.result.loss));
  if (s.result.against) {
    const Against a = against_of(s);
    pairs.emplace_back("top-1 in " + s.against, format_percent(a.top1));
    pairs.emplace_back("difference", strf("%+.2f points in %s", 100 * a.difference, s.dtype.c_str()));
    pairs.emplace_back("same answer", format_percent(a.agreement));
  }
  if (s.seen && s.seen->found > 0) add("seen in training", s.seen->share());
  return pairs;
}

std::string class_table(const EvalSubject& s, size_t rows) {
  const bool single = s.result.confusion.has_value();
  Table table({{"class"},
               {"images", Align::kRight},
               {single ? "top-1" : "AP", Align::kRight},
               {"precision", Align::kRight},
               {single ? "top-5" : "recall", Align::kRight},
               {"F1", Align::kRight}});
  const size_t classes = s.dataset.classes().size();
  for (size_t i = 0; i < std::min(rows, classes); ++i) {
    const std::string name = shown(s.dataset.classes()[i]);
    if (single) {
      const ClassCounts& c = s.result.confusion->of(static_cast<int64_t>(i));
      table.row({name, format_integer(c.count), format_percent(c.recall()), format_percent(c.precision()),
                 format_percent(c.top5_share()), format_percent(c.f1())});
    } else {
      const LabelScores& c = s.result.multi_label->classes[i];
      table.row({name, format_integer(c.positives), format_percent(c.average_precision),
                 format_percent(c.precision), format_percent(c.recall), format_percent(c.f1)});
    }
  }
  return table.text() + (rows < classes ? strf("and %zu more (--classes)\n", classes - rows) : "");
}

std::string confused_table(const EvalSubject& s) {
  Table table({{"is"}, {"taken for"}, {"images", Align::kRight}, {"of the class", Align::kRight}});
  for (const ConfusedPair& pair : s.result.confusion->most_confused(kConfusedPairs))
    table.row({shown(class_name(s, pair.label)), shown(class_name(s, pair.predicted)),
               format_integer(pair.count), format_percent(pair.share)});
  return table.rows() ? "\n" + table.text() : "";
}

std::string worst_table(const EvalSubject& s) {
  Table table({{"worst images"}, {"is"}, {"taken for"}, {"prob", Align::kRight}, {"loss", Align::kRight}});
  for (const SampleResult& one : s.result.worst)
    table.row({shown(s.dataset.sample_name(one.sample)), shown(class_name(s, one.label)),
               shown(class_name(s, one.predicted)), format_percent(one.probability),
               format_significant(one.loss)});
  return table.rows() ? "\n" + table.text() : "";
}

}  // namespace

ordered_json eval_json(const EvalSubject& s) {
  const EvalStatus status = s.result.status(0, 0, "model");
  ordered_json json = {{"model", shown(s.model)}, {"data", shown(s.data)}, {"part", s.part}};
  if (s.result.confusion)
    json.update({{"top1", *status.top1}, {"top5", *status.top5}});
  else
    json.update({{"map", *status.mean_ap}, {"f1", *status.macro_f1}});
  json.update({{"count", s.result.count},
               {"loss", s.result.loss},
               {"seconds", s.result.seconds},
               {"img_per_s", static_cast<double>(s.result.count) / s.result.seconds}});
  json["dtype"] = s.dtype;
  if (s.seen) json["seen_in_training"] = s.seen->share();
  if (s.result.against) {
    const Against a = against_of(s);
    json["against"] = {{"dtype", s.against},
                       {"top1", a.top1},
                       {"difference_points", 100 * a.difference},
                       {"agreement", a.agreement}};
  }
  json["classes"] = classes_json(s);
  if (!s.result.confusion) return json;
  json["confused"] = ordered_json::array();
  for (const ConfusedPair& pair : s.result.confusion->most_confused(kConfusedPairs))
    json["confused"].push_back({{"label", class_name(s, pair.label)},
                                {"predicted", class_name(s, pair.predicted)},
                                {"count", pair.count},
                                {"share", pair.share}});
  json["worst"] = images_json(s, s.result.worst);
  return json;
}

std::string eval_text(const EvalSubject& s, size_t rows) {
  Pairs pairs = {{"model", architecture_text(s.card.config)}, {"data", shown(s.data) + ", part " + s.part}};
  for (auto& figure : figures(s)) pairs.push_back(std::move(figure));
  pairs.emplace_back(
      "time", strf("%s, %s img/s in %s on %s", format_seconds(s.result.seconds).c_str(),
                   format_si(static_cast<double>(s.result.count) / s.result.seconds).c_str(),
                   (s.result.against ? s.dtype + " and " + s.against : s.dtype).c_str(), s.device.c_str()));
  const std::string text = format_pairs(pairs) + "\n" + class_table(s, rows);
  return s.result.confusion ? text + confused_table(s) + worst_table(s) : text;
}

std::string eval_page(const EvalSubject& s, const std::string& generator) {
  Report report;
  report.title = "Evaluation of " + shown(s.model);
  report.verdict = strf("%s %s on %s of %s", format_percent(s.result.top1()).c_str(),
                        s.result.confusion ? "top-1" : "mean average precision",
                        format_count(s.result.count, "image").c_str(), shown(s.data).c_str());
  report.figures = figures(s);
  add_eval_sections(report, s.result, s.dataset);
  report.machine = {{"device", s.device}, {"time", format_seconds(s.result.seconds)}};
  const ordered_json config = {
      {"model", shown(s.model)}, {"data", shown(s.data)}, {"part", s.part}, {"card", card_json(s.card)}};
  report.config = json_text(config, 2);
  report.generator = generator;
  return render_report(report);
}

}  // namespace vitrail
