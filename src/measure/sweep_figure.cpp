// The results of a sweep as table and as figure.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/values.h"
#include "measure/profile_sweep.h"
#include "telemetry/format.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
double images_per_second(const Sweep::Row& row) {
  return static_cast<double>(row.profile.batch) / row.profile.seconds.median;
}

// Returns the seconds in a part of the network, all phases together; empty where the row has none.
std::string part_text(const Profile& profile, const std::string& part) {
  double seconds = 0;
  for (const ProfileRow& row : profile.parts)
    if (row.name == part) seconds += row.seconds;
  return seconds > 0 ? format_seconds(seconds) : "";
}

// The axis along which lines are drawn: the first one of several numbers.
size_t number_axis(const Sweep& sweep) {
  for (size_t a = 0; a < sweep.axes.size(); ++a)
    if ((sweep.axes[a].name == "threads" || sweep.axes[a].name == "batch") && sweep.axes[a].values.size() > 1)
      return a;
  return sweep.axes.size();
}

// Names a row by all axes but one.
std::string name_without(const Sweep& sweep, const Sweep::Row& row, size_t axis) {
  std::string name;
  for (size_t a = 0; a < sweep.axes.size(); ++a)
    if (a != axis) name += (name.empty() ? "" : ", ") + sweep.axes[a].name + " " + row.values[a];
  return name.empty() ? "measured" : name;
}

double seconds_most(const Sweep& sweep) {
  double most = 0;
  for (const Sweep::Row& row : sweep.rows) most = std::max(most, row.profile.seconds.median);
  return most;
}

std::string title_of(const Sweep& sweep) {
  return sweep.rows[0].profile.training ? "Time of an update" : "Time of a run";
}

// Returns t1/n of the quickest row at the smallest number of threads.
Series ideal_of(const Sweep& sweep, size_t axis, double unit) {
  double first = INFINITY, threads = INFINITY;
  for (const Sweep::Row& row : sweep.rows) threads = std::min(threads, std::stod(row.values[axis]));
  for (const Sweep::Row& row : sweep.rows)
    if (std::stod(row.values[axis]) <= threads) first = std::min(first, row.profile.seconds.median);
  Series ideal{.name = "ideal", .points = {}, .dashed = true};
  std::vector<double> at;
  for (const std::string& value : sweep.axes[axis].values) at.push_back(std::stod(value));
  std::sort(at.begin(), at.end());
  for (const double n : at) ideal.points.push_back({n, first * threads / n * unit});
  return ideal;
}

Figure lines(const Sweep& sweep, size_t axis) {
  const TimeUnit unit = time_unit(seconds_most(sweep));
  std::map<std::string, std::vector<Point>> points;
  LineChart chart{.title = title_of(sweep),
                  .x_label = sweep.axes[axis].name,
                  .y_label = unit.name,
                  .series = {},
                  .log_y = true,
                  .log_x = true,
                  .wide = true};
  for (const std::string& value : sweep.axes[axis].values) chart.x_ticks.push_back(std::stod(value));
  for (const Sweep::Row& row : sweep.rows) {
    const Spread& s = row.profile.seconds;
    points[name_without(sweep, row, axis)].push_back({std::stod(row.values[axis]), s.median * unit.per_second,
                                                      s.min * unit.per_second, s.p90 * unit.per_second});
  }
  for (auto& [name, list] : points) {
    std::sort(list.begin(), list.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    chart.series.push_back({.name = name, .points = std::move(list)});
  }
  if (sweep.axes[axis].name == "threads") chart.series.push_back(ideal_of(sweep, axis, unit.per_second));
  return line_chart(chart);
}

// Groups are the values of the first axis, bars those of the others.
Figure bars(const Sweep& sweep) {
  const TimeUnit unit = time_unit(seconds_most(sweep));
  BarChart chart{.title = title_of(sweep), .x_label = sweep.axes[0].name, .y_label = unit.name};
  chart.groups = sweep.axes[0].values;
  chart.wide = true;
  std::map<std::string, BarSeries> series;
  for (const Sweep::Row& row : sweep.rows) {
    const std::string name = name_without(sweep, row, 0);
    BarSeries& bar = series[name];
    bar.name = name;
    const auto group =
        std::find(chart.groups.begin(), chart.groups.end(), row.values[0]) - chart.groups.begin();
    for (auto* list : {&bar.values, &bar.low, &bar.high}) list->resize(chart.groups.size(), NAN);
    bar.values[static_cast<size_t>(group)] = row.profile.seconds.median * unit.per_second;
    bar.low[static_cast<size_t>(group)] = row.profile.seconds.min * unit.per_second;
    bar.high[static_cast<size_t>(group)] = row.profile.seconds.p90 * unit.per_second;
  }
  for (auto& [name, bar] : series) chart.series.push_back(std::move(bar));
  return bar_chart(chart);
}
}  // namespace

HtmlTable to_table(const Sweep& sweep) {
  HtmlTable table;
  for (const SweepAxis& axis : sweep.axes) table.columns.push_back({axis.name, Align::kRight});
  for (const char* title : {"median", "min", "p90", "images/s", "speed-up", "embeddings", "attention", "MLP"})
    table.columns.push_back({title, Align::kRight});
  for (const Sweep::Row& row : sweep.rows) {
    std::vector<HtmlCell> cells;
    for (const std::string& value : row.values) cells.push_back({value, ""});
    const Spread& s = row.profile.seconds;
    for (const std::string& text : {format_seconds(s.median), format_seconds(s.min), format_seconds(s.p90),
                                    format_si(images_per_second(row)),
                                    strf("%.2f x", images_per_second(row) / images_per_second(sweep.rows[0])),
                                    part_text(row.profile, "embeddings"), part_text(row.profile, "attention"),
                                    part_text(row.profile, "MLP")})
      cells.push_back({text, ""});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string to_text(const Sweep& sweep) {
  const HtmlTable content = to_table(sweep);
  Table table(content.columns);
  for (const auto& cells : content.rows) {
    std::vector<std::string> texts;
    texts.reserve(cells.size());
    for (const HtmlCell& cell : cells) texts.push_back(cell.text);
    table.row(texts);
  }
  return table.text();
}

Figure sweep_figure(const Sweep& sweep) {
  VT_CHECK(!sweep.rows.empty(), "%s", "a sweep without measurements has no figure");
  const size_t axis = number_axis(sweep);
  return axis < sweep.axes.size() ? lines(sweep, axis) : bars(sweep);
}

}  // namespace vitrail
