// Draws a line chart as SVG, and thins out and smooths its points.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "telemetry/html.h"
#include "telemetry/plot/frame.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
constexpr size_t kMostPoints = 600, kMostMarks = 40;

bool shows(const Frame& frame, const Point& p) {
  return frame.x.holds(p.x) && frame.y.holds(p.y);
}

bool has_error(const Frame& frame, const Point& p) {
  return shows(frame, p) && frame.y.holds(p.low) && frame.y.holds(p.high);
}

// Draws the segments of the line between points that cannot be shown; a single point becomes a dot of the
// line's width.
std::string path_of(const Frame& frame, const std::vector<Point>& points) {
  std::string path;
  size_t length = 0;  // of the segment so far
  const auto close = [&] {
    if (length == 1) path += "h0";
    length = 0;
  };
  for (const Point& p : points) {
    if (!shows(frame, p)) {
      close();
      continue;
    }
    path += strf("%s%.1f,%.1f", length == 0 ? "M" : "L", frame.px(p.x), frame.py(p.y));
    ++length;
  }
  close();
  return path;
}

// Marks are drawn where each can be seen; the text under the pointer needs no script.
std::string marks_of(const Frame& frame, const Series& series, const std::vector<Point>& points, int colour) {
  std::string out;
  for (const Point& p : points) {
    if (!shows(frame, p)) continue;
    if (has_error(frame, p))
      out += error_bar(frame.px(p.x), frame.py(p.low), frame.py(p.high), colour, false);
    out += "<g><title>" + html_escape(series.name) + strf(": %.5g at %.5g</title>", p.y, p.x) +
           marker(colour, colour, frame.px(p.x), frame.py(p.y), 2.8) + "</g>";
  }
  return out;
}

// Encodes the values that a page's script shows under the pointer: "pixel,x,y;..."
std::string values_of(const Frame& frame, const std::vector<Point>& points) {
  std::string out;
  for (const Point& p : points)
    if (shows(frame, p)) out += strf("%s%.1f,%.9g,%.5g", out.empty() ? "" : ";", frame.px(p.x), p.x, p.y);
  return out;
}

bool has_marks(const Series& series, const std::vector<Point>& points) {
  return !series.faint && !series.dashed && points.size() <= kMostMarks;
}

std::string draw(const Frame& frame, const Series& series, const std::vector<Point>& points, int colour) {
  std::string out;
  if (series.line) {
    out = strf("<path class=\"line c%d%s%s\" d=\"", colour, series.faint ? " faint" : "",
               series.dashed ? " dashed" : "") +
          path_of(frame, points) + "\"";
    if (!series.faint)
      out +=
          " data-name=\"" + html_escape(series.name) + "\" data-values=\"" + values_of(frame, points) + "\"";
    out += "/>";
  }
  if (has_marks(series, points)) out += marks_of(frame, series, points, colour);
  return out + "\n";
}

Frame frame_of(const LineChart& chart, const std::vector<std::vector<Point>>& lines) {
  Frame frame(chart.log_x, chart.log_y, chart.wide);
  if (chart.from_zero) frame.y.include(0);
  for (const auto& line : lines)
    for (const Point& p : line) {
      if (!shows(frame, p)) continue;
      frame.x.include(p.x);
      for (const double y : {p.y, p.low, p.high}) frame.y.include(y);
    }
  frame.x.finish(chart.wide ? 9 : 6, false);
  frame.y.finish(5, true);
  if (!chart.x_ticks.empty()) frame.x.mark(chart.x_ticks);
  frame.fit_labels();
  return frame;
}
}  // namespace

std::vector<Point> decimate(const std::vector<Point>& points, size_t most) {
  if (points.size() <= most || most < 4) return points;
  // Each interval between the first and the last point keeps two points.
  const size_t inner = points.size() - 2, stretches = (most - 2) / 2;
  std::vector<Point> kept = {points.front()};
  for (size_t s = 0; s < stretches; ++s) {
    const size_t from = 1 + s * inner / stretches, to = 1 + (s + 1) * inner / stretches;
    size_t low = from, high = from;
    for (size_t i = from; i < to; ++i) {
      if (points[i].y < points[low].y || std::isnan(points[low].y)) low = i;
      if (points[i].y > points[high].y || std::isnan(points[high].y)) high = i;
    }
    kept.push_back(points[std::min(low, high)]);
    if (low != high) kept.push_back(points[std::max(low, high)]);
  }
  kept.push_back(points.back());
  return kept;
}

std::vector<Point> smooth(const std::vector<Point>& points, double span) {
  const double keep = 1 - 1 / std::max(span, 1.0);
  double sum = 0, weight = 0;
  std::vector<Point> out;
  out.reserve(points.size());
  for (const Point& p : points) {
    if (std::isfinite(p.y)) {
      sum = sum * keep + p.y;
      weight = weight * keep + 1;
    }
    out.push_back({p.x, std::isfinite(p.y) ? sum / weight : p.y});
  }
  return out;
}

Figure line_chart(const LineChart& chart) {
  std::vector<std::vector<Point>> lines;
  for (const Series& series : chart.series) lines.push_back(decimate(series.points, kMostPoints));
  const Frame frame = frame_of(chart, lines);
  Figure figure{.title = chart.title,
                .note = chart.y_label,
                .legend = {},
                .width = frame.width,
                .height = frame.height,
                .body = left_axis(frame) + bottom_axis(frame, chart.x_label, false),
                .wide = chart.wide};
  int next = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Series& series = chart.series[i];
    if (series.follows && next > 0) --next;
    const int colour = next % kColours;
    figure.body += draw(frame, series, lines[i], colour);
    if (series.faint) continue;
    // A line without marks has a sample without one.
    const bool plain = series.dashed || !has_marks(series, lines[i]);
    figure.legend.push_back({series.name,
                             series.dashed ? KeyKind::kDashed
                             : series.line ? KeyKind::kLine
                                           : KeyKind::kMark,
                             colour, plain ? -1 : colour});
    ++next;
  }
  if (figure.legend.size() < 2) figure.legend.clear();
  figure.body += strf("<line class=\"cursor\" y1=\"%g\" y2=\"%g\"/>", frame.top, frame.bottom);
  return figure;
}

}  // namespace vitrail
