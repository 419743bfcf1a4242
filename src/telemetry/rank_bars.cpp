#include "telemetry/rank_bars.h"

#include <algorithm>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/html.h"

namespace vitrail {

namespace {
constexpr double kWidth = 760, kLeft = 64, kRow = 20, kBar = 14;  // of the drawing, in its own units

struct Part {
  const char *name, *color;
  double (*seconds)(const RankTime& rank);
};
constexpr Part kParts[] = {
    {"compute", "s0", [](const RankTime& r) { return r.compute_s; }},
    {"communication", "s1", [](const RankTime& r) { return std::max(0.0, r.exposed_s - r.imbalance_s); }},
    {"imbalance", "s4", [](const RankTime& r) { return std::min(r.imbalance_s, r.exposed_s); }},
    {"data wait", "s5", [](const RankTime& r) { return r.data_wait_s; }}};

std::string legend() {
  std::string out = "<div class=\"legend\">";
  for (const Part& part : kParts) out += strf("<span><i class=\"%s\"></i>%s</span>", part.color, part.name);
  return out + "</div>\n";
}

std::string bar(const RankTime& rank, size_t number, double scale, double updates) {
  const double y = kRow * static_cast<double>(number) + 3;
  std::string out = strf("<text x=\"0\" y=\"%.1f\">rank %zu</text>", y + kBar - 3, number);
  double x = kLeft;
  for (const Part& part : kParts) {
    const double seconds = part.seconds(rank), width = seconds * scale;
    if (width <= 0) continue;
    out += strf("<g><title>rank %zu: %s %s an update, %s</title>", number, part.name,
                format_seconds(seconds / updates).c_str(), format_percent(seconds / rank.total_s()).c_str()) +
           strf("<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.0f\"/></g>", part.color,
                x, y, width, kBar);
    x += width;
  }
  return out + "\n";
}

std::string bars(const TimingStatus& timing) {
  double most = 0;
  for (const RankTime& rank : timing.ranks) most = std::max(most, rank.total_s());
  if (most <= 0) return "";
  const double updates = static_cast<double>(std::max<int64_t>(timing.updates, 1));
  const double height = kRow * static_cast<double>(timing.ranks.size()) + 6;
  std::string out = strf("<figure><figcaption>An update of %s, by rank</figcaption>\n",
                         format_seconds(timing.update_s()).c_str()) +
                    legend() +
                    strf("<svg class=\"bars\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n", kWidth, height);
  for (size_t r = 0; r < timing.ranks.size(); ++r)
    out += bar(timing.ranks[r], r, (kWidth - kLeft) / most, updates);
  return out + "</svg></figure>\n";
}

std::string rank_table(const TimingStatus& timing) {
  HtmlTable table{{{"rank", Align::kRight},
                   {"compute", Align::kRight},
                   {"exposed", Align::kRight},
                   {"of it imbalance", Align::kRight},
                   {"data wait", Align::kRight},
                   {"hidden behind compute", Align::kRight}},
                  {},
                  true};
  const double updates = static_cast<double>(std::max<int64_t>(timing.updates, 1));
  const auto cell = [&](double seconds) {
    return HtmlCell{format_seconds(seconds / updates), strf("%.9g", seconds)};
  };
  for (size_t r = 0; r < timing.ranks.size(); ++r) {
    const RankTime& t = timing.ranks[r];
    table.rows.push_back({{std::to_string(r), std::to_string(r)},
                          cell(t.compute_s),
                          cell(t.exposed_s),
                          cell(t.imbalance_s),
                          cell(t.data_wait_s),
                          cell(t.hidden_s)});
  }
  return html_table(table);
}

std::string collective_table(const TimingStatus& timing) {
  if (timing.collectives.empty()) return "";
  HtmlTable table{{{"collective"},
                   {"an update", Align::kRight},
                   {"bytes a rank sends", Align::kRight},
                   {"on its way", Align::kRight},
                   {"bus bandwidth", Align::kRight}},
                  {}};
  const double updates = static_cast<double>(std::max<int64_t>(timing.updates, 1));
  for (const CollectiveTime& c : timing.collectives)
    table.rows.push_back(
        {{c.kind, ""},
         {format_significant(static_cast<double>(c.count) / updates), ""},
         {format_bytes(static_cast<uint64_t>(c.bytes / updates)), ""},
         {format_seconds(c.seconds / static_cast<double>(std::max<int64_t>(c.count, 1))), ""},
         {c.seconds > 0 ? format_si(c.bus_bytes_per_s()) + "B/s" : "", ""}});
  return "<h3>Collectives of rank 0</h3>\n" + html_table(table);
}

std::string start_table(const StartStatus& start) {
  HtmlTable table{{{"phase"}, {"quickest rank", Align::kRight}, {"slowest rank", Align::kRight}}, {}};
  for (const StartStatus::Phase& phase : start.phases) {
    if (phase.seconds.empty()) continue;
    const auto [least, most] = std::minmax_element(phase.seconds.begin(), phase.seconds.end());
    table.rows.push_back({{phase.name, ""}, {format_seconds(*least), ""}, {format_seconds(*most), ""}});
  }
  return table.rows.empty() ? "" : "<h3>Start</h3>\n" + html_table(table);
}

}  // namespace

std::string rank_section(const RankHistory& history) {
  std::string out;
  if (history.timing)
    out += bars(*history.timing) + rank_table(*history.timing) + collective_table(*history.timing);
  if (history.start) out += start_table(*history.start);
  return out;
}

}  // namespace vitrail
