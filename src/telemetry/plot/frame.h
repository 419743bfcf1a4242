// The area of a figure between its axes: where values lie in it, and the axes as SVG. Knows no kind of
// figure.
#pragma once

#include <string>
#include <vector>

#include "telemetry/plot/axis.h"

namespace vitrail {

struct Frame {
  Frame(bool log_x, bool log_y, bool wide);

  ChartAxis x, y;
  double width, height;             // of the figure
  double left, right, top, bottom;  // of the area

  // Makes room on the left for the labels of the y axis, once it is finished.
  void fit_labels();
  void fit_labels(const std::vector<std::string>& names);

  double px(double value) const { return left + x.position(value) * (right - left); }
  double py(double value) const { return bottom - y.position(value) * (bottom - top); }
};

// A label, a grid line across the area and a number at each tick; of labels that would overlap the first
// stays.
std::string left_axis(const Frame& frame);
std::string bottom_axis(const Frame& frame, const std::string& label, bool grid);

// Names of rows and of columns, `step` apart, in the middle of each; columns' are turned where they are long.
// Returns what is below the area.
std::string row_names(const Frame& frame, const std::vector<std::string>& names, double step);
std::string column_names(const Frame& frame, const std::vector<std::string>& names, double step,
                         const std::string& label);
// The room below the area that column_names() needs.
double column_names_height(const std::vector<std::string>& names, double step, const std::string& label);

// An error bar between two values of the y axis, or of the x axis, with its ends marked.
std::string error_bar(double x, double from, double to, int colour, bool horizontal);

}  // namespace vitrail
