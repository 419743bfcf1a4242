// Line charts as SVG for a page: axes, ticks, grid, legend, and the values a script shows under the pointer.
// Colours are the page's (classes s0..s5); knows no metrics.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

struct Point {
  double x, y;
};

struct Series {
  std::string name;
  std::vector<Point> points;  // x ascending; a NaN y interrupts the line
  bool faint = false;         // drawn pale behind the next series and in its colour, not in the legend
};

struct LineChart {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool log_y = false;
};

// Returns at most about `most` points that look the same: the lowest and the highest of every interval stay,
// so no spike is lost; the first and the last stay.
std::vector<Point> decimate(const std::vector<Point>& points, size_t most);

// Returns a running average over about `span` points.
std::vector<Point> smooth(const std::vector<Point>& points, double span);

// Returns a <figure> with caption, legend (when there are several series) and <svg>.
std::string line_chart(const LineChart& chart);

}  // namespace vitrail
