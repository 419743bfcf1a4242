#include "telemetry/plot/frame.h"

#include <algorithm>

#include "base/error.h"
#include "telemetry/html.h"
#include "telemetry/plot/figure.h"

namespace vitrail {

namespace {
constexpr size_t kMostLetters = 26;                            // of a name beside a row or below a column
constexpr double kSlant = 35, kSine = 0.574, kCosine = 0.819;  // of turned names, in degrees

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return strf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + html_escape(text) +
         "</text>";
}

std::string line_of(double x1, double y1, double x2, double y2) {
  return strf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x1, y1, x2, y2);
}

double widest(const std::vector<std::string>& names) {
  double width = 0;
  for (const std::string& name : names) width = std::max(width, text_width(shortened(name, kMostLetters)));
  return width;
}

// Long names are turned, unless the columns are so narrow that even turned ones would overlap.
bool turned(const std::vector<std::string>& names, double step) {
  return widest(names) + 6 > step && widest(names) > 40;
}
}  // namespace

Frame::Frame(bool log_x, bool log_y, bool wide)
    : x(log_x),
      y(log_y),
      width(wide ? 860 : 526),
      height(wide ? 360 : 250),
      left(50),
      right(width - 18),
      top(12),
      bottom(height - 42) {}

void Frame::fit_labels() {
  std::vector<std::string> names;
  for (const Tick& tick : y.ticks()) names.push_back(tick.label);
  left = std::max(50.0, 14 + widest(names));
}

void Frame::fit_labels(const std::vector<std::string>& names) {
  left = 14 + widest(names);
}

std::string left_axis(const Frame& f) {
  std::string grid, labels;
  for (const Tick& tick : f.y.ticks()) {
    const double at = f.py(tick.value);
    grid += line_of(f.left, at, f.right, at);
    labels += text_at(f.left - 6, at + 3.5, "end", tick.label);
  }
  return "<g class=\"grid\">" + grid + "</g>\n<g class=\"axis\">" +
         line_of(f.left, f.bottom, f.right, f.bottom) + labels + "</g>\n";
}

std::string bottom_axis(const Frame& f, const std::string& label, bool grid) {
  std::string lines, labels;
  double free_from = -1e9;  // where the next label may begin
  for (const Tick& tick : f.x.ticks()) {
    const double at = f.px(tick.value), half = text_width(tick.label) / 2;
    if (grid) lines += line_of(at, f.top, at, f.bottom);
    labels += line_of(at, f.bottom, at, f.bottom + 4);
    const double middle = std::min(at, f.width - half);
    if (middle - half < free_from) continue;
    labels += text_at(middle, f.bottom + 16, "middle", tick.label);
    free_from = middle + half + 6;
  }
  return "<g class=\"grid\">" + lines + "</g>\n<g class=\"axis\">" + labels +
         text_at((f.left + f.right) / 2, f.bottom + 34, "middle", label) + "</g>\n";
}

std::string row_names(const Frame& f, const std::vector<std::string>& names, double step) {
  std::string out = "<g class=\"axis\">";
  double free_from = -1e9;
  for (size_t i = 0; i < names.size(); ++i) {
    const double middle = f.top + step * (static_cast<double>(i) + 0.5);
    if (middle - 5.5 < free_from) continue;
    out += text_at(f.left - 6, middle + 3.5, "end", shortened(names[i], kMostLetters));
    free_from = middle + 5.5;
  }
  return out + "</g>\n";
}

std::string column_names(const Frame& f, const std::vector<std::string>& names, double step,
                         const std::string& label) {
  std::string out = "<g class=\"axis\">";
  const bool turn = turned(names, step);
  double free_from = -1e9;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = shortened(names[i], kMostLetters);
    const double middle = f.left + step * (static_cast<double>(i) + 0.5);
    const double half = turn ? 7 : text_width(name) / 2;
    if (middle - half < free_from) continue;
    free_from = middle + half + (turn ? 2 : 4);
    if (turn)
      out += strf("<text transform=\"translate(%.1f %.1f) rotate(-%g)\" text-anchor=\"end\">", middle + 4,
                  f.bottom + 14, kSlant) +
             html_escape(name) + "</text>";
    else
      out += text_at(middle, f.bottom + 16, "middle", name);
  }
  if (!label.empty())
    out += text_at((f.left + f.right) / 2, f.bottom + column_names_height(names, step, label) - 8, "middle",
                   label);
  return out + "</g>\n";
}

double column_names_height(const std::vector<std::string>& names, double step, const std::string& label) {
  return (turned(names, step) ? 22 + widest(names) * kSine : 24) + (label.empty() ? 0 : 18);
}

std::string error_bar(double x, double from, double to, int colour, bool horizontal) {
  constexpr double kHalf = 3;
  const std::string path = horizontal ? strf("M%.1f,%.1fH%.1fm0,%.1fv%.1fM%.1f,%.1fv%.1f", from, x, to,
                                             -kHalf, 2 * kHalf, from, x - kHalf, 2 * kHalf)
                                      : strf("M%.1f,%.1fV%.1fm%.1f,0h%.1fM%.1f,%.1fh%.1f", x, from, to,
                                             -kHalf, 2 * kHalf, x - kHalf, from, 2 * kHalf);
  return strf("<path class=\"bar err c%d\" d=\"", colour) + path + "\"/>";
}

}  // namespace vitrail
