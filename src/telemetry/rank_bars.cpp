#include "telemetry/rank_bars.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
struct Part {
  const char* name;
  double (*seconds)(const RankTime& rank);
};
constexpr Part kParts[] = {
    {"compute", [](const RankTime& r) { return r.compute_s; }},
    {"communication", [](const RankTime& r) { return std::max(0.0, r.exposed_s - r.imbalance_s); }},
    {"imbalance", [](const RankTime& r) { return std::min(r.imbalance_s, r.exposed_s); }},
    {"data wait", [](const RankTime& r) { return r.data_wait_s; }}};

// One bar a rank, its parts end to end.
BarChart bars(const TimingStatus& timing) {
  const double updates = static_cast<double>(std::max<int64_t>(timing.updates, 1));
  const TimeUnit unit = time_unit(timing.update_s());
  BarChart chart{.title = "An update of " + format_seconds(timing.update_s()) + ", by rank",
                 .x_label = "",
                 .y_label = strf("%s an update", unit.name),
                 .stacked = true,
                 .horizontal = true,
                 .wide = true};
  for (size_t r = 0; r < timing.ranks.size(); ++r) chart.groups.push_back(strf("rank %zu", r));
  for (const Part& part : kParts) {
    BarSeries series{.name = part.name};
    for (size_t r = 0; r < timing.ranks.size(); ++r) {
      const RankTime& rank = timing.ranks[r];
      const double seconds = part.seconds(rank);
      series.values.push_back(seconds > 0 ? seconds / updates * unit.per_second : NAN);
      series.tips.push_back(strf("rank %zu: %s %s an update, %s", r, part.name,
                                 format_seconds(seconds / updates).c_str(),
                                 format_percent(seconds / rank.total_s()).c_str()));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

HtmlTable rank_table(const TimingStatus& timing) {
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
  return table;
}

HtmlTable collective_table(const TimingStatus& timing) {
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
         {c.seconds > 0 && c.bytes > 0 ? format_si(c.bus_bytes_per_s()) + "B/s" : "", ""}});
  return table;
}

HtmlTable start_table(const StartStatus& start) {
  HtmlTable table{{{"phase"}, {"quickest rank", Align::kRight}, {"slowest rank", Align::kRight}}, {}};
  for (const StartStatus::Phase& phase : start.phases) {
    if (phase.seconds.empty()) continue;
    const auto [least, most] = std::minmax_element(phase.seconds.begin(), phase.seconds.end());
    table.rows.push_back({{phase.name, ""}, {format_seconds(*least), ""}, {format_seconds(*most), ""}});
  }
  return table;
}

}  // namespace

void add_ranks(Page& page, const RankHistory& history) {
  const auto titled = [&](const char* title, const HtmlTable& table) {
    if (table.rows.empty()) return;
    page.heading(title);
    page.table(table);
  };
  if (history.timing && history.timing->update_s() > 0) {
    page.figure(bar_chart(bars(*history.timing)));
    page.table(rank_table(*history.timing));
    titled("Collectives of rank 0", collective_table(*history.timing));
  }
  if (history.start) titled("Start", start_table(*history.start));
}

}  // namespace vitrail
