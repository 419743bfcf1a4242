#include "telemetry/plot/figure.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "telemetry/format.h"
#include "telemetry/html.h"

namespace vitrail {

const Palette kLightPalette = {
    "#ffffff",
    "#1b1f27",
    "#5d6675",
    "#c9d0da",
    "#edf0f4",
    "#ffffff",
    {"#0072b2", "#d55e00", "#20a150", "#cd77ae", "#654e32", "#0099fe", "#4b2a7c", "#5d6675"}};
const Palette kDarkPalette = {
    "#1a1f27",
    "#e8ebf0",
    "#9aa5b5",
    "#3a4350",
    "#252b35",
    "#10131a",
    {"#5aa9ff", "#f08a3c", "#2fd48a", "#f3b6c8", "#f4ec6a", "#b4ecff", "#8a6cff", "#8d97a6"}};

namespace {
constexpr double kLetter = 6.1;                       // width of a letter at the labels' size
constexpr double kKeyWidth = 22, kKeyHeight = 10;     // of a legend's sample
constexpr double kTitleHeight = 26, kRowHeight = 18;  // in a file of its own
constexpr double kMargin = 12;

// The rules that name a colour.
std::string theme(const Palette& p) {
  std::string out = strf(
      ".plot .back{fill:%s}.plot text,.plot .note{fill:%s}.plot .ink{fill:%s}.plot .axis line{stroke:%s}"
      ".plot .grid line{stroke:%s}.plot .on{fill:%s}.plot .gap{stroke:%s}.plot .frame{stroke:%s}"
      ".plot .roof,.plot .cursor{stroke:%s}",
      p.back, p.soft, p.ink, p.line, p.grid, p.on, p.back, p.line, p.soft);
  for (int c = 0; c < kColours; ++c)
    out += strf(".plot .c%d{fill:%s}.plot .line.c%d,.plot .bar.c%d{fill:none;stroke:%s}", c, p.colours[c], c,
                c, p.colours[c]);
  return out + "\n";
}

std::string sample(const LegendKey& key, double x, double y) {
  const double middle = y + kKeyHeight / 2;
  if (key.kind == KeyKind::kArea)
    return strf("<rect class=\"c%d\" x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"%.1f\" rx=\"2\"/>",
                key.colour, x + 4, y, kKeyHeight);
  std::string out;
  if (key.kind != KeyKind::kMark)
    out = strf("<path class=\"line c%d%s\" d=\"M%.1f,%.1fh%.1f\"/>", key.colour,
               key.kind == KeyKind::kDashed ? " dashed" : "", x + 1, middle, kKeyWidth - 2);
  if (key.kind != KeyKind::kDashed && key.shape >= 0)
    out += marker(key.shape, key.colour, x + kKeyWidth / 2, middle, 3.2);
  return out;
}

std::string html_legend(const Figure& figure) {
  if (figure.legend.empty()) return "";
  std::string out = "<div class=\"legend\">";
  for (const LegendKey& key : figure.legend)
    out += strf("<span><svg class=\"plot key\" viewBox=\"0 0 %g %g\">", kKeyWidth, kKeyHeight) +
           sample(key, 0, 0) + "</svg>" + html_escape(key.name) + "</span>";
  return out + "</div>\n";
}

// Keys follow each other in rows; returns where the last row ends.
double svg_legend(const Figure& figure, double top, std::string& out) {
  double x = kMargin;
  for (const LegendKey& key : figure.legend) {
    const double width = kKeyWidth + 6 + text_width(key.name) + 16;
    if (x > kMargin && x + width > figure.width) {
      x = kMargin;
      top += kRowHeight;
    }
    out += sample(key, x, top) + strf("<text x=\"%.1f\" y=\"%.1f\">", x + kKeyWidth + 6, top + 9) +
           html_escape(key.name) + "</text>\n";
    x += width;
  }
  return figure.legend.empty() ? top : top + kRowHeight;
}
}  // namespace

double text_width(std::string_view text) {
  return kLetter * static_cast<double>(display_width(text));
}

std::string shortened(const std::string& name, size_t most) {
  if (!is_valid_utf8(name) || display_width(name) <= most) return name;
  size_t cells = 0, end = 0;
  for (; end < name.size(); ++end) {
    const bool starts = (static_cast<unsigned char>(name[end]) & 0xC0) != 0x80;
    if (starts && ++cells == most) break;
  }
  return name.substr(0, end) + "…";
}

std::string marker(int shape, int colour, double x, double y, double size) {
  const double s = size, d = size * 1.25;
  const std::string begin = strf("<path class=\"c%d mark\" d=\"M%.1f,%.1f", colour, x, y);
  switch (shape % 6) {
    case 1:  // square
      return begin + strf("m%.2f,%.2fh%.2fv%.2fh%.2fz\"/>", -s * 0.9, -s * 0.9, s * 1.8, s * 1.8, -s * 1.8);
    case 2:  // triangle
      return begin + strf("m0,%.2fl%.2f,%.2fh%.2fz\"/>", -d, d, d * 1.8, -2 * d);
    case 3:  // diamond
      return begin + strf("m0,%.2fl%.2f,%.2fl%.2f,%.2fl%.2f,%.2fz\"/>", -d, d, d, -d, d, -d, -d);
    case 4:  // triangle pointing down
      return begin + strf("m0,%.2fl%.2f,%.2fh%.2fz\"/>", d, d, -d * 1.8, -2 * d);
    case 5:  // hourglass
      return begin + strf("m%.2f,%.2fh%.2fl%.2f,%.2fh%.2fz\"/>", -s, -s, 2 * s, -2 * s, 2 * s, 2 * s);
    default:
      return strf("<circle class=\"c%d mark\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", colour, x, y, s);
  }
}

std::string plot_style() {
  return ".plot text{font:11px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}.plot "
         ".title{font-size:14px;"
         "font-weight:600}.plot .note{font-size:11px;font-weight:400}.plot "
         ".line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}"
         ".plot .dashed{stroke-dasharray:6 5}.plot .faint{opacity:.28;stroke-width:1.2}.plot "
         ".bar{stroke-width:1.3}"
         ".plot .err{opacity:.8}.plot .roof{fill:none;stroke-width:1.5}.plot .frame{fill:none}"
         ".plot .cursor{stroke-dasharray:3 3;visibility:hidden}.plot .gap{stroke-width:1}\n" +
         theme(kLightPalette) + "@media (prefers-color-scheme:dark){" + theme(kDarkPalette) + "}\n";
}

std::string to_html(const Figure& figure) {
  const std::string title = html_escape(figure.title), note = html_escape(figure.note);
  const std::string limit =
      figure.page_width > 0 ? strf(" style=\"width:%.0fpx;max-width:100%%\"", figure.page_width) : "";
  return strf("<figure class=\"chart%s\">", figure.wide ? " wide" : "") +
         (title.empty() ? ""
                        : "<figcaption>" + title + (note.empty() ? "" : " <small>" + note + "</small>") +
                              "</figcaption>\n") +
         html_legend(figure) +
         strf("<svg class=\"plot\"%s viewBox=\"0 0 %.1f %.1f\" role=\"img\" aria-label=\"", limit.c_str(),
              figure.width, figure.height) +
         title + "\">\n" + figure.body + "</svg></figure>\n";
}

std::string to_svg(const Figure& figure) {
  std::string head;
  double top = kMargin;
  if (!figure.title.empty()) {
    head += strf("<text class=\"title ink\" x=\"%g\" y=\"%g\">", kMargin, top + 12) +
            html_escape(figure.title) + "<tspan class=\"note\" dx=\"8\">" + html_escape(figure.note) +
            "</tspan></text>\n";
    top += kTitleHeight;
  }
  top = svg_legend(figure, top, head);
  const double height = top + figure.height;
  return strf(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"%.0f\" height=\"%.0f\" "
             "viewBox=\"0 0 %.1f %.1f\">\n",
             figure.width, height, figure.width, height) +
         "<title>" + html_escape(figure.title) + "</title>\n<style>" + plot_style() + "</style>\n" +
         strf("<rect class=\"back\" width=\"%.1f\" height=\"%.1f\"/>\n", figure.width, height) + head +
         strf("<g transform=\"translate(0 %.1f)\">\n", top) + figure.body + "</g>\n</svg>\n";
}

}  // namespace vitrail
