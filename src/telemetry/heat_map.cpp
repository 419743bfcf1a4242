#include "telemetry/heat_map.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "telemetry/format.h"
#include "telemetry/html.h"

namespace vitrail {

namespace {
constexpr size_t kLabelCells = 18;  // longer names are cut
constexpr double kLetter = 6.3;     // width of a letter at the label's size
constexpr double kCountsFrom = 26;  // a cell this wide shows its count
constexpr double kLargestPlot = 560;

struct Layout {
  double cell, left, top = 8, plot;
};

// Returns the first code points of a name; a cut one ends in an ellipsis.
std::string shortened(const std::string& name) {
  if (!is_valid_utf8(name) || display_width(name) <= kLabelCells) return name;
  size_t cells = 0, end = 0;
  for (; end < name.size(); ++end) {
    const bool starts = (static_cast<unsigned char>(name[end]) & 0xC0) != 0x80;
    if (starts && ++cells == kLabelCells) break;
  }
  return name.substr(0, end) + "…";
}

std::string cell_html(const Layout& at, const ConfusionMatrix& matrix, const std::vector<std::string>& names,
                      int64_t row, int64_t column) {
  const int64_t count = matrix.at(row, column);
  if (count == 0) return "";
  const double share = static_cast<double>(count) / static_cast<double>(matrix.of(row).count);
  // The square root makes rare confusions visible.
  const double strength = 0.08 + 0.92 * std::sqrt(share);
  const double x = at.left + at.cell * static_cast<double>(column);
  const double y = at.top + at.cell * static_cast<double>(row);
  std::string out = strf("<g><title>%s → %s: %s (%s)</title>", html_escape(class_label(names, row)).c_str(),
                         html_escape(class_label(names, column)).c_str(), format_integer(count).c_str(),
                         format_percent(share).c_str());
  out +=
      strf("<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"%.2f\"/>",
           row == column ? "right" : "wrong", x + 0.5, y + 0.5, at.cell - 1, at.cell - 1, strength);
  const std::string text =
      count < 10000 ? strf("%lld", static_cast<long long>(count)) : format_si(static_cast<double>(count));
  if (at.cell >= kCountsFrom)
    out += strf("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>",
                strength > 0.6 ? "strong" : "pale", x + at.cell / 2, y + at.cell / 2 + 3.5, text.c_str());
  return out + "</g>\n";
}

std::string labels(const Layout& at, const std::vector<std::string>& names, int64_t classes) {
  std::string out = "<g class=\"axis\">";
  for (int64_t i = 0; i < classes; ++i) {
    const std::string name = html_escape(shortened(class_label(names, i)));
    const double middle = at.cell * (static_cast<double>(i) + 0.5);
    out += strf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", at.left - 6, at.top + middle + 3.5) +
           name + "</text>";
    const double x = at.left + middle + 3.5, y = at.top + at.plot + 6;
    out += strf("<text transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"end\">", x, y) + name +
           "</text>";
  }
  return out + "</g>\n";
}
}  // namespace

std::string class_label(const std::vector<std::string>& names, int64_t index) {
  const auto i = static_cast<size_t>(index);
  return i < names.size() && !names[i].empty() ? names[i] : strf("class %zu", i);
}

std::string heat_map(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  const int64_t classes = matrix.classes();
  size_t longest = 1;
  for (int64_t i = 0; i < classes; ++i)
    longest = std::max(longest, display_width(shortened(class_label(names, i))));
  Layout at{};
  at.top = 8;
  at.cell = std::clamp(kLargestPlot / static_cast<double>(std::max<int64_t>(classes, 1)), 13.0, 44.0);
  at.left = 12 + kLetter * static_cast<double>(longest);
  at.plot = at.cell * static_cast<double>(classes);
  const double width = at.left + at.plot + 8, height = at.top + at.plot + at.left;
  std::string out = strf(
      "<svg class=\"heat\" viewBox=\"0 0 %.1f %.1f\" style=\"width:%.0fpx\" role=\"img\" "
      "aria-label=\"confusion matrix\">\n",
      width, height, width);
  out += strf("<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", at.left,
              at.top, at.plot, at.plot);
  for (int64_t row = 0; row < classes; ++row)
    for (int64_t column = 0; column < classes; ++column) out += cell_html(at, matrix, names, row, column);
  return out + labels(at, names, classes) + "</svg>\n";
}

}  // namespace vitrail
