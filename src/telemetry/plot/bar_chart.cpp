// Draws a bar chart as SVG: groups of bars, stacked or side by side, upright or lying.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/html.h"
#include "telemetry/plot/frame.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
constexpr double kRow = 22, kLeastRow = 4, kMostHeight = 1400;  // of horizontal bars
constexpr double kUsed = 0.74;  // of a group's room; the rest is between groups

bool is_bar(const BarSeries& series, size_t group) {
  return group < series.values.size() && std::isfinite(series.values[group]);
}

// Says where a bar of a group begins and ends, in values and within the group's room.
struct Bar {
  size_t series, group;
  double from, to;         // values
  double offset, breadth;  // shares of the group's room
};

std::vector<Bar> bars_of(const BarChart& chart) {
  std::vector<Bar> bars;
  const auto count = static_cast<double>(chart.series.size());
  for (size_t g = 0; g < chart.groups.size(); ++g) {
    double reached = 0;
    for (size_t s = 0; s < chart.series.size(); ++s) {
      if (!is_bar(chart.series[s], g)) continue;
      const double value = chart.series[s].values[g], from = chart.stacked ? reached : 0;
      const double breadth = chart.stacked ? kUsed : kUsed / count;
      const double offset = (1 - kUsed) / 2 + (chart.stacked ? 0 : breadth * static_cast<double>(s));
      bars.push_back({s, g, from, from + value, offset, breadth});
      reached += value;
    }
  }
  return bars;
}

std::string tip_of(const BarChart& chart, const Bar& bar) {
  const BarSeries& series = chart.series[bar.series];
  if (bar.group < series.tips.size()) return series.tips[bar.group];
  return chart.groups[bar.group] + ": " + (series.name.empty() ? "" : series.name + " ") +
         format_significant(series.values[bar.group]) + " " + chart.y_label;
}

std::string rectangle(int colour, bool gap, double x, double y, double width, double height) {
  return strf("<rect class=\"c%d%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>", colour,
              gap ? " gap" : "", x, y, width, height);
}

// Draws a bar and its error bar in a group's room that begins at `start`.
std::string draw(const BarChart& chart, const Frame& frame, const Bar& bar, double start, double room) {
  const BarSeries& series = chart.series[bar.series];
  const int colour = static_cast<int>(bar.series) % kColours;
  const double at = start + bar.offset * room, breadth = bar.breadth * room;
  const bool error = bar.group < series.low.size() && bar.group < series.high.size() &&
                     std::isfinite(series.low[bar.group]) && std::isfinite(series.high[bar.group]);
  const bool gap = chart.stacked && breadth > 6;
  std::string out = "<g><title>" + html_escape(tip_of(chart, bar)) + "</title>";
  if (chart.horizontal) {
    const double a = frame.px(bar.from), b = frame.px(bar.to);
    out += rectangle(colour, gap, std::min(a, b), at, std::fabs(b - a), breadth);
  } else {
    const double a = frame.py(bar.from), b = frame.py(bar.to);
    out += rectangle(colour, gap, at, std::min(a, b), breadth, std::fabs(b - a));
  }
  if (error) {
    const auto place = [&](double v) { return chart.horizontal ? frame.px(v) : frame.py(v); };
    // It has the labels' grey: in its own colour half of it would not be seen.
    out += error_bar(at + breadth / 2, place(series.low[bar.group]), place(series.high[bar.group]),
                     kColours - 1, chart.horizontal);
  }
  return out + "</g>\n";
}

void include_values(const BarChart& chart, const std::vector<Bar>& bars, ChartAxis& axis) {
  axis.include(0);
  for (const Bar& bar : bars) axis.include(bar.to);
  for (const BarSeries& series : chart.series)
    for (const auto* ends : {&series.low, &series.high})
      for (const double value : *ends) axis.include(value);
  axis.finish(5, true);
}

Figure figure_of(const BarChart& chart) {
  Figure figure{.title = chart.title, .note = chart.horizontal ? "" : chart.y_label, .wide = chart.wide};
  for (size_t s = 0; s < chart.series.size(); ++s)
    figure.legend.push_back({chart.series[s].name, KeyKind::kArea, static_cast<int>(s) % kColours});
  if (figure.legend.size() < 2) figure.legend.clear();
  return figure;
}

Figure horizontal_bars(const BarChart& chart, const std::vector<Bar>& bars) {
  Frame frame(false, false, chart.wide);
  include_values(chart, bars, frame.x);
  const auto groups = static_cast<double>(std::max<size_t>(chart.groups.size(), 1));
  const double side_by_side =
      chart.stacked ? 1 : static_cast<double>(std::max<size_t>(chart.series.size(), 1));
  const double step =
      std::clamp(kMostHeight / groups, kLeastRow, chart.stacked ? kRow : 10 + 9 * side_by_side);
  frame.fit_labels(chart.groups);
  frame.bottom = frame.top + step * groups;
  frame.height = frame.bottom + 42;
  Figure figure = figure_of(chart);
  figure.width = frame.width;
  figure.height = frame.height;
  figure.body = bottom_axis(frame, chart.y_label, true) + row_names(frame, chart.groups, step);
  for (const Bar& bar : bars)
    figure.body += draw(chart, frame, bar, frame.top + step * static_cast<double>(bar.group), step);
  return figure;
}
}  // namespace

Figure bar_chart(const BarChart& chart) {
  const std::vector<Bar> bars = bars_of(chart);
  if (chart.horizontal) return horizontal_bars(chart, bars);
  Frame frame(false, false, chart.wide);
  include_values(chart, bars, frame.y);
  frame.fit_labels();
  const double step =
      (frame.right - frame.left) / static_cast<double>(std::max<size_t>(chart.groups.size(), 1));
  frame.height = frame.bottom + column_names_height(chart.groups, step, chart.x_label);
  Figure figure = figure_of(chart);
  figure.width = frame.width;
  figure.height = frame.height;
  figure.body = left_axis(frame) + column_names(frame, chart.groups, step, chart.x_label);
  for (const Bar& bar : bars)
    figure.body += draw(chart, frame, bar, frame.left + step * static_cast<double>(bar.group), step);
  return figure;
}

}  // namespace vitrail
