// The figures that reports draw, each described by its data and made into a Figure (figure.h): lines with
// error bars, bars side by side or stacked, heat map, roofline, timeline. Knows no metrics and no run.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "telemetry/plot/figure.h"

namespace vitrail {

struct Point {
  double x, y;
  double low = NAN, high = NAN;  // ends of the error bar; NaN: none
};

struct Series {
  std::string name;
  std::vector<Point> points;  // x ascending; a NaN y interrupts the line
  bool faint = false;         // drawn pale behind the next series and in its colour, not in the legend
  bool dashed = false;        // what is expected, not measured: dashed and without markers
  bool line = true;           // false: markers alone
  bool follows = false;       // drawn in the colour of the series before, of which it is a model
};

struct LineChart {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool log_y = false, log_x = false;
  bool from_zero = false;  // the y axis begins at 0
  std::vector<double>
      x_ticks;        // where values have their own marks, such as numbers of ranks; empty: round ones
  bool wide = false;  // fills the page instead of half of it
};
Figure line_chart(const LineChart& chart);

// Returns at most about `most` points that look the same: the lowest and the highest of every interval stay,
// so no spike is lost; the first and the last stay.
std::vector<Point> decimate(const std::vector<Point>& points, size_t most);

// Returns a running average over about `span` points.
std::vector<Point> smooth(const std::vector<Point>& points, double span);

struct BarSeries {
  std::string name;
  std::vector<double> values;     // by group; NaN: no bar
  std::vector<double> low, high;  // ends of error bars by group; empty: none
  std::vector<std::string> tips;  // text under the pointer by group; empty: name and value
};

struct BarChart {
  std::string title, x_label, y_label;  // y: along the bars
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
  bool stacked = false;     // a group's bars end to end, else side by side
  bool horizontal = false;  // groups one below the other
  bool wide = false;
};
Figure bar_chart(const BarChart& chart);

struct HeatCell {
  size_t row, column;
  double strength;        // 0 pale to 1 full
  int colour = 0;         // of the palette
  std::string text, tip;  // in the cell where it has room, and under the pointer
};

struct HeatMap {
  std::string title, row_label, column_label;
  std::vector<std::string> rows, columns;
  std::vector<HeatCell> cells;  // those that are not empty
};
Figure heat_map(const HeatMap& map);

// Achieved rates under what a device could do: peak rates as flat roofs, the memory's bandwidth as the slope.
struct RooflineChart {
  struct Roof {
    std::string name;
    double flops_per_s;
  };
  struct Work {
    std::string name;
    double flops, bytes, seconds;
  };
  std::string title;
  std::vector<Roof> roofs;
  double bytes_per_s = 0;
  std::vector<Work> work;  // what lacks FLOPs, bytes or seconds is left out
};
Figure roofline_chart(const RooflineChart& roofline);

struct Timeline {
  struct Span {
    size_t lane, kind;
    double start_s, end_s;
    std::string name;
  };
  std::string title;
  std::vector<std::string> lanes, kinds;
  std::vector<Span> spans;
};
Figure timeline_chart(const Timeline& timeline);

}  // namespace vitrail
