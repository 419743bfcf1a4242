// Draws a heat map as SVG.
#include <algorithm>

#include "base/error.h"
#include "telemetry/html.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
constexpr size_t kMostNameLetters = 18;  // of a name
constexpr double kLargestPlot = 560, kTop = 8;
constexpr double kStrong = 0.6;  // from here on a cell's text has the background's colour

struct Layout {
  double cell_width, cell_height, left;
};

double longest(const std::vector<std::string>& names) {
  double width = 6;
  for (const std::string& name : names)
    width = std::max(width, text_width(shortened(name, kMostNameLetters)));
  return width;
}

std::string draw(const Layout& at, const HeatCell& cell) {
  const double x = at.left + at.cell_width * static_cast<double>(cell.column);
  const double y = kTop + at.cell_height * static_cast<double>(cell.row);
  const double strength = std::clamp(cell.strength, 0.0, 1.0);
  std::string out = "<g><title>" + html_escape(cell.tip) + "</title>";
  out +=
      strf("<rect class=\"c%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"%.2f\"/>",
           cell.colour % kColours, x + 0.5, y + 0.5, at.cell_width - 1, at.cell_height - 1, strength);
  if (text_width(cell.text) + 2 <= at.cell_width && at.cell_height >= 13 && !cell.text.empty())
    out += strf("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                strength > kStrong ? "on" : "ink", x + at.cell_width / 2, y + at.cell_height / 2 + 3.5) +
           html_escape(cell.text) + "</text>";
  return out + "</g>\n";
}

std::string labels(const Layout& at, const HeatMap& map, double bottom, double turned_height) {
  std::string out = "<g class=\"axis\">";
  for (size_t i = 0; i < map.rows.size(); ++i)
    out += strf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", at.left - 6,
                kTop + at.cell_height * (static_cast<double>(i) + 0.5) + 3.5) +
           html_escape(shortened(map.rows[i], kMostNameLetters)) + "</text>";
  for (size_t i = 0; i < map.columns.size(); ++i) {
    const double middle = at.left + at.cell_width * (static_cast<double>(i) + 0.5);
    out += (turned_height > 0
                ? strf("<text transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"end\">",
                       middle + 3.5, bottom + 6)
                : strf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", middle, bottom + 16)) +
           html_escape(shortened(map.columns[i], kMostNameLetters)) + "</text>";
  }
  return out + "</g>\n";
}
}  // namespace

Figure heat_map(const HeatMap& map) {
  const auto rows = static_cast<double>(std::max<size_t>(map.rows.size(), 1));
  const auto columns = static_cast<double>(std::max<size_t>(map.columns.size(), 1));
  Layout at{};
  const double side = std::clamp(kLargestPlot / std::max(rows, columns), 13.0, 44.0);
  // Few columns are as wide as their names and texts ask for.
  double wanted = side;
  for (const HeatCell& cell : map.cells) wanted = std::max(wanted, text_width(cell.text) + 8);
  at.cell_width = std::max(side, std::min(wanted, kLargestPlot / columns));
  at.cell_height = std::min(side, 44.0);
  at.left = 12 + longest(map.rows) + (map.row_label.empty() ? 0 : 18);
  const double right = at.left + at.cell_width * columns, bottom = kTop + at.cell_height * rows;
  const bool turn = longest(map.columns) + 4 > at.cell_width;
  const double below = turn ? longest(map.columns) + 12 : 24;
  Figure figure{.title = map.title, .note = "", .legend = {}, .width = right + 8};
  figure.height = bottom + below + (map.column_label.empty() ? 0 : 18);
  figure.page_width = figure.width;
  figure.body = strf("<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                     at.left, kTop, right - at.left, bottom - kTop);
  for (const HeatCell& cell : map.cells) figure.body += draw(at, cell);
  figure.body += labels(at, map, bottom, turn ? below : 0);
  if (!map.column_label.empty())
    figure.body += strf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (at.left + right) / 2,
                        figure.height - 6) +
                   html_escape(map.column_label) + "</text>\n";
  if (!map.row_label.empty())
    figure.body += strf("<text transform=\"translate(12 %.1f) rotate(-90)\" text-anchor=\"middle\">",
                        (kTop + bottom) / 2) +
                   html_escape(map.row_label) + "</text>\n";
  return figure;
}

}  // namespace vitrail
