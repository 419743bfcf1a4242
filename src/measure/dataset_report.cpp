#include "measure/dataset_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

std::string class_table(const Dataset& data, const std::vector<int64_t>& counts, size_t rows) {
  constexpr int kBar = 30;
  int64_t most = 1;
  for (const int64_t count : counts) most = std::max(most, count);
  Table table({{"class"}, {"name"}, {"samples", Align::kRight}, {"share", Align::kRight}, {""}});
  for (size_t i = 0; i < std::min(rows, counts.size()); ++i) {
    const double share = static_cast<double>(counts[i]) / static_cast<double>(data.size());
    table.row({std::to_string(i), shown(data.classes()[i]), format_integer(counts[i]), format_percent(share),
               format_bar(static_cast<double>(counts[i]) / static_cast<double>(most), kBar)});
  }
  std::string text = table.text(2);
  if (rows < counts.size()) text += strf("  and %zu more (--classes)\n", counts.size() - rows);
  return text;
}

ordered_json spread_json(const Spread& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}
std::string spread_text(const Spread& spread) {
  return spread.min == spread.max ? strf("%.0f", spread.min)
                                  : strf("%.0f to %.0f, median %.0f", spread.min, spread.max, spread.median);
}
std::string numbers_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += strf("%s%.4f", text.empty() ? "" : ", ", value);
  return text;
}
}  // namespace

ordered_json to_json(const DatasetReport& report) {
  const Dataset& data = report.data;
  const ImageStatistics& images = report.found.images;
  ordered_json json = {{"data", report.name},
                       {"part", report.part},
                       {"count", data.size()},
                       {"multi_label", data.multi_label()},
                       {"classes", ordered_json::array()},
                       {"looked_at", report.found.looked_at},
                       {"bad", report.found.bad}};
  for (size_t i = 0; i < report.counts.size(); ++i)
    json["classes"].push_back({{"name", data.classes()[i]}, {"count", report.counts[i]}});
  if (images.count() > 0) {
    json["width"] = spread_json(images.widths());
    json["height"] = spread_json(images.heights());
    json["channels"] = images.channels();
    json["mean"] = images.mean();
    json["std"] = images.deviation();
  }
  json["fingerprint"] = strf("%016llx", static_cast<unsigned long long>(data.fingerprint()));
  return json;
}

std::string to_text(const DatasetReport& report, size_t rows) {
  const Dataset& data = report.data;
  const ImageStatistics& images = report.found.images;
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"samples", format_integer(data.size()) + (data.multi_label() ? ", several labels each" : "")},
      {"classes", format_integer(static_cast<int64_t>(report.counts.size()))}};
  if (images.count() > 0)
    pairs.insert(pairs.end(), {{"width", spread_text(images.widths())},
                               {"height", spread_text(images.heights())},
                               {"mean", numbers_text(images.mean())},
                               {"std", numbers_text(images.deviation())}});
  return format_pairs(pairs, 2) + "\n" + class_table(data, report.counts, rows);
}

}  // namespace vitrail
