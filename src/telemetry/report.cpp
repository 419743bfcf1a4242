#include "telemetry/report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "base/error.h"
#include "telemetry/confusion_map.h"
#include "telemetry/format.h"
#include "telemetry/html.h"
#include "telemetry/rank_bars.h"

namespace vitrail {

namespace {
constexpr size_t kMostPairs = 20, kMostPairsBesideMap = 12, kMostClassRows = 2000, kMostEvents = 500;
constexpr uint32_t kSmallImage = 132;  // narrower ones are shown enlarged

HtmlCell integer_cell(int64_t value) {
  return {format_integer(value), strf("%lld", static_cast<long long>(value))};
}

HtmlCell share_cell(double share) {
  return {format_percent(share), strf("%.6g", share)};
}

std::string confused_pairs(const Report& report, size_t most) {
  HtmlTable table{{{"true"}, {"taken for"}, {"images", Align::kRight}, {"of the class", Align::kRight}}, {}};
  for (const ConfusedPair& pair : report.confusion->most_confused(most))
    table.rows.push_back({{class_label(report.classes, pair.label), ""},
                          {class_label(report.classes, pair.predicted), ""},
                          integer_cell(pair.count),
                          share_cell(pair.share)});
  return table.rows.empty() ? "" : "<h3>Most confused</h3>\n" + html_table(table);
}

std::string confusion(const Report& report) {
  if (!report.confusion) return "";
  if (report.confusion->classes() > kMostHeatMapClasses) return confused_pairs(report, kMostPairs);
  return "<p class=\"note\">Rows are true classes, columns predictions. Blue cells are right, orange ones "
         "wrong; the stronger, the larger the share of the row.</p>\n<div class=\"beside\">\n<div>" +
         to_html(heat_map(confusion_map(*report.confusion, report.classes))) + "</div>\n<div>" +
         confused_pairs(report, kMostPairsBesideMap) + "</div></div>\n";
}

// Chooses the rows a table shows: all in order, or the worst when there are too many.
std::vector<size_t> chosen_rows(const std::vector<double>& quality) {
  std::vector<size_t> order(quality.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (order.size() <= kMostClassRows) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return quality[a] < quality[b]; });
  order.resize(kMostClassRows);
  return order;
}

std::string cut_note(size_t shown, size_t all) {
  return shown == all ? "" : strf("<p class=\"note\">The worst %zu of %zu classes.</p>\n", shown, all);
}

std::string class_table(const Report& report) {
  const ConfusionMatrix& matrix = *report.confusion;
  HtmlTable table{{{"class"},
                   {"images", Align::kRight},
                   {"top-1 (recall)", Align::kRight},
                   {"top-5", Align::kRight},
                   {"precision", Align::kRight},
                   {"F1", Align::kRight}},
                  {},
                  true};
  std::vector<double> recall;
  for (int64_t i = 0; i < matrix.classes(); ++i) recall.push_back(matrix.of(i).recall());
  const std::vector<size_t> rows = chosen_rows(recall);
  for (const size_t row : rows) {
    const ClassCounts& c = matrix.of(static_cast<int64_t>(row));
    table.rows.push_back({{class_label(report.classes, static_cast<int64_t>(row)), ""},
                          integer_cell(c.count),
                          share_cell(c.recall()),
                          share_cell(c.top5_share()),
                          share_cell(c.precision()),
                          share_cell(c.f1())});
  }
  return cut_note(rows.size(), recall.size()) + html_table(table);
}

std::string label_table(const Report& report) {
  const std::vector<LabelScores>& classes = report.multi_label->classes;
  HtmlTable table{{{"label"},
                   {"images", Align::kRight},
                   {"average precision", Align::kRight},
                   {"precision", Align::kRight},
                   {"recall", Align::kRight},
                   {"F1", Align::kRight}},
                  {},
                  true};
  std::vector<double> quality;
  quality.reserve(classes.size());
  for (const LabelScores& c : classes) quality.push_back(c.average_precision);
  const std::vector<size_t> rows = chosen_rows(quality);
  for (const size_t row : rows) {
    const LabelScores& c = classes[row];
    table.rows.push_back({{class_label(report.classes, static_cast<int64_t>(row)), ""},
                          integer_cell(c.positives),
                          share_cell(c.average_precision),
                          share_cell(c.precision),
                          share_cell(c.recall),
                          share_cell(c.f1)});
  }
  return cut_note(rows.size(), classes.size()) + html_table(table);
}

std::string per_class(const Report& report) {
  if (report.multi_label) return label_table(report);
  return report.confusion ? class_table(report) : "";
}

// Returns the width in a PNG's header, 0 when the header is incomplete.
uint32_t png_width(const std::vector<uint8_t>& png) {
  if (png.size() < 24) return 0;
  return uint32_t{png[16]} << 24 | uint32_t{png[17]} << 16 | uint32_t{png[18]} << 8 | png[19];
}

std::string image(const ReportImage& p) {
  const bool right = p.label == p.predicted;
  const char* size = png_width(p.png) < kSmallImage ? " class=\"small\"" : "";
  return "<figure><img" + std::string(size) + " src=\"" + png_data_address(p.png) + "\" alt=\"" +
         html_escape(p.name) + "\" title=\"" + html_escape(p.name) + "\">" +
         strf("<b class=\"%s\">%s ", right ? "yes" : "no", right ? "✓" : "✗") + html_escape(p.predicted) +
         "</b> " + format_percent(p.probability) + (right ? "" : "<br>is " + html_escape(p.label)) +
         "</figure>\n";
}

std::string images(const char* heading, const std::vector<ReportImage>& list) {
  if (list.empty()) return "";
  std::string out = strf("<h3>%s</h3>\n<div class=\"images\">\n", heading);
  for (const ReportImage& p : list) out += image(p);
  return out + "</div>\n";
}

HtmlTable memory(const std::vector<MemoryRow>& rows) {
  HtmlTable table{
      {{"category"}, {"planned", Align::kRight}, {"actual", Align::kRight}, {"difference", Align::kRight}},
      {}};
  MemoryRow all{"total", 0, 0};
  const auto add = [&](const MemoryRow& row) {
    const bool more = row.actual >= row.planned;
    const uint64_t difference = more ? row.actual - row.planned : row.planned - row.actual;
    table.rows.push_back({{row.category, ""},
                          {format_bytes(row.planned), ""},
                          {format_bytes(row.actual), ""},
                          {difference == 0 ? "none" : (more ? "+" : "−") + format_bytes(difference), ""}});
    all.planned += row.planned;
    all.actual += row.actual;
  };
  for (const MemoryRow& row : rows) add(row);
  if (rows.size() > 1) add(MemoryRow(all));
  return table;
}

std::string utc_text(double seconds) {
  if (!(seconds >= 0 && seconds < 253402300800.0)) return "";  // year 10000
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32];
  if (!::gmtime_r(&whole, &parts) || std::strftime(text, sizeof text, "%F %T UTC", &parts) == 0) return "";
  return text;
}

std::string events(const std::vector<RunEvent>& list) {
  if (list.empty()) return "";
  HtmlTable table{{{"step", Align::kRight}, {"event"}, {"what happened"}, {"time"}}, {}};
  const size_t from = list.size() > kMostEvents ? list.size() - kMostEvents : 0;
  for (size_t i = from; i < list.size(); ++i)
    table.rows.push_back(
        {integer_cell(list[i].step), {list[i].what, ""}, {list[i].text, ""}, {utc_text(list[i].time), ""}});
  return (from > 0 ? strf("<p class=\"note\">The last %zu of %zu.</p>\n", kMostEvents, list.size()) : "") +
         html_table(table);
}

std::string config(const std::string& text) {
  if (text.empty()) return "";
  return "<details><summary>as resolved</summary><pre>" + html_escape(text) + "</pre></details>\n";
}
}  // namespace

std::string render_report(const Report& report) {
  Page page(report.title);
  page.verdict(report.verdict);
  page.tiles(report.figures);
  page.section("curves", "Curves");
  std::vector<Figure> curves;
  for (const LineChart& chart : report.curves) curves.push_back(line_chart(chart));
  page.figures(curves);
  page.section("confusion", "Confusion");
  page.html(confusion(report));
  page.section("classes", "Classes");
  page.html(per_class(report));
  page.section("images", "Images");
  page.html(images("Most certain and right", report.best) + images("Furthest from right", report.worst));
  page.section("ranks", "Ranks");
  add_ranks(page, report.ranks);
  page.section("memory", "Memory");
  page.table(memory(report.memory));
  page.section("events", "Events");
  page.html(events(report.events));
  page.section("machine", "Machine");
  page.pairs(report.machine);
  page.section("config", "Configuration");
  page.html(config(report.config));
  return page.text(report.generator);
}

}  // namespace vitrail
