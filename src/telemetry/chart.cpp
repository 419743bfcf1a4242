#include "telemetry/chart.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "telemetry/axis.h"
#include "telemetry/html.h"

namespace vitrail {

namespace {
constexpr size_t kMostPoints = 600, kMostDots = 40;
constexpr int kColours = 6;

// The plot area inside the image, in SVG units.
constexpr double kWidth = 526, kHeight = 250;
constexpr double kLeft = 50, kRight = 508, kTop = 12, kBottom = 208;

struct Frame {
  Axis x{false}, y;
  explicit Frame(bool log_y) : y(log_y) {}
  double px(double value) const { return kLeft + x.position(value) * (kRight - kLeft); }
  double py(double value) const { return kBottom - y.position(value) * (kBottom - kTop); }
  bool shows(const Point& p) const { return x.holds(p.x) && y.holds(p.y); }
};

std::string axes(const Frame& frame, const LineChart& chart) {
  std::string out = "<g class=\"grid\">";
  for (const Tick& tick : frame.y.ticks()) {
    const double at = frame.py(tick.value);
    out += strf("<line x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\"/>", kLeft, at, kRight, at);
  }
  out += strf("</g>\n<g class=\"axis\"><line x1=\"%g\" y1=\"%g\" x2=\"%g\" y2=\"%g\"/>", kLeft, kBottom,
              kRight, kBottom);
  for (const Tick& tick : frame.y.ticks())
    out += strf("<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>", kLeft - 6,
                frame.py(tick.value) + 3.5, tick.label.c_str());
  for (const Tick& tick : frame.x.ticks()) {
    const double at = frame.px(tick.value);
    out += strf("<line x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\"/>", at, kBottom, at, kBottom + 4);
    out += strf("<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>", at, kBottom + 16,
                tick.label.c_str());
  }
  out += strf("<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">", (kLeft + kRight) / 2, kBottom + 34);
  return out + html_escape(chart.x_label) + "</text></g>\n";
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
    if (!frame.shows(p)) {
      close();
      continue;
    }
    path += strf("%s%.1f,%.1f", length == 0 ? "M" : "L", frame.px(p.x), frame.py(p.y));
    ++length;
  }
  close();
  return path;
}

std::string dots_of(const Frame& frame, const std::vector<Point>& points, int colour) {
  std::string out;
  for (const Point& p : points)
    if (frame.shows(p))
      out += strf("<circle class=\"s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", colour, frame.px(p.x),
                  frame.py(p.y));
  return out;
}

// Encodes the values that the script shows under the pointer: "pixel,x,y;..."
std::string values_of(const Frame& frame, const std::vector<Point>& points) {
  std::string out;
  for (const Point& p : points)
    if (frame.shows(p)) out += strf("%s%.1f,%.9g,%.5g", out.empty() ? "" : ";", frame.px(p.x), p.x, p.y);
  return out;
}

std::string draw(const Frame& frame, const Series& series, const std::vector<Point>& points, int colour) {
  std::string out = strf("<path class=\"s%d%s\" d=\"", colour, series.faint ? " faint" : "") +
                    path_of(frame, points) + "\"";
  if (!series.faint)
    out += " data-name=\"" + html_escape(series.name) + "\" data-values=\"" + values_of(frame, points) + "\"";
  out += "/>";
  if (!series.faint && points.size() <= kMostDots) out += dots_of(frame, points, colour);
  return out + "\n";
}

std::string legend(const LineChart& chart) {
  const auto shown =
      std::count_if(chart.series.begin(), chart.series.end(), [](auto& s) { return !s.faint; });
  if (shown < 2) return "";
  std::string out = "<div class=\"legend\">";
  int colour = 0;
  for (const Series& series : chart.series)
    if (!series.faint)
      out += strf("<span><i class=\"s%d\"></i>", colour++ % kColours) + html_escape(series.name) + "</span>";
  return out + "</div>\n";
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

std::string line_chart(const LineChart& chart) {
  Frame frame(chart.log_y);
  std::vector<std::vector<Point>> lines;
  for (const Series& series : chart.series) {
    lines.push_back(decimate(series.points, kMostPoints));
    for (const Point& p : lines.back()) {
      if (!frame.shows(p)) continue;
      frame.x.include(p.x);
      frame.y.include(p.y);
    }
  }
  frame.x.finish(6, false);
  frame.y.finish(5, true);
  const std::string title = html_escape(chart.title), unit = html_escape(chart.y_label);
  std::string out = "<figure class=\"chart\"><figcaption>" + title +
                    (unit.empty() ? "" : " <small>" + unit + "</small>") + "</figcaption>\n" + legend(chart);
  out += strf("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", kWidth, kHeight) + title + "\">\n";
  out += axes(frame, chart);
  int colour = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    out += draw(frame, chart.series[i], lines[i], colour % kColours);
    if (!chart.series[i].faint) ++colour;
  }
  return out + strf("<line class=\"cursor\" y1=\"%g\" y2=\"%g\"/></svg></figure>\n", kTop, kBottom);
}

}  // namespace vitrail
