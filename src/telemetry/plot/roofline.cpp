// Draws a roofline as SVG: roofs, and work under them by its arithmetic intensity.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/html.h"
#include "telemetry/plot/frame.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
constexpr double kLetterHeight = 12;

struct Box {
  double x1, y1, x2, y2;
  bool meets(const Box& o) const { return x1 < o.x2 && o.x1 < x2 && y1 < o.y2 && o.y1 < y2; }
};

struct Unit {
  const char* name;
  double size;
};

Unit unit_of(double flops_per_s) {
  return flops_per_s >= 1e13 ? Unit{"TFLOP/s", 1e12} : Unit{"GFLOP/s", 1e9};
}

bool can_show(const RooflineChart::Work& work) {
  return work.flops > 0 && work.bytes > 0 && work.seconds > 0;
}

double intensity(const RooflineChart::Work& work) {
  return work.flops / work.bytes;
}

// Places names beside their marks where they meet no other; what finds no place is named by the legend alone.
class Labels {
 public:
  explicit Labels(const Frame& frame) : frame_(frame) {}
  void keep_free(const Box& box) { taken_.push_back(box); }

  // A name on the left ends beside its mark, however wide the reader's letters are.
  std::string place(double x, double y, const std::string& name) {
    const double width = text_width(name);
    struct Spot {
      double dx, dy;
      const char* anchor;
      double before;  // the share of the name that lies before the anchor
    };
    constexpr Spot kSpots[] = {{8, 4, "start", 0},     {-8, 4, "end", 1},   {0, -9, "middle", 0.5},
                               {0, 17, "middle", 0.5}, {6, -7, "start", 0}, {6, 15, "start", 0}};
    for (const Spot& spot : kSpots) {
      const double left = x + spot.dx - spot.before * width, line = y + spot.dy;
      const Box box{left, line - kLetterHeight + 2, left + width, line + 2};
      const bool inside =
          box.x1 > frame_.left && box.x2 < frame_.width && box.y1 > 0 && box.y2 < frame_.bottom;
      if (!inside || std::any_of(taken_.begin(), taken_.end(), [&](const Box& b) { return b.meets(box); }))
        continue;
      taken_.push_back(box);
      return strf("<text class=\"ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x + spot.dx, line,
                  spot.anchor) +
             html_escape(name) + "</text>";
    }
    return "";
  }

 private:
  const Frame& frame_;
  std::vector<Box> taken_;
};

double highest_roof(const RooflineChart& roofline) {
  double peak = 0;
  for (const auto& roof : roofline.roofs) peak = std::max(peak, roof.flops_per_s);
  return peak;
}

Frame frame_of(const RooflineChart& roofline, const Unit& unit) {
  Frame frame(true, true, true);
  const double peak = highest_roof(roofline);
  frame.y.include(peak / unit.size);
  for (const auto& work : roofline.work) {
    if (!can_show(work)) continue;
    for (const double room : {0.8, 1.25}) frame.x.include(room * intensity(work));  // no mark lies on an axis
    frame.y.include(work.flops / work.seconds / unit.size);
  }
  // Both sides of the corner are seen.
  if (roofline.bytes_per_s > 0 && peak > 0)
    for (const double factor : {0.25, 4.0}) frame.x.include(factor * peak / roofline.bytes_per_s);
  frame.x.finish(9, true);
  frame.y.finish(6, true);
  frame.fit_labels();
  frame.top = 24;  // for the names of roofs
  return frame;
}

// A roof rises with the bandwidth and is flat from its corner on.
std::string draw_roof(const Frame& frame, const RooflineChart& roofline, const RooflineChart::Roof& roof,
                      const Unit& unit, Labels& labels) {
  const double low = frame.x.value_at(0), high = frame.x.value_at(1), floor = frame.y.value_at(0) * unit.size;
  std::string path;
  double corner = low;
  if (roofline.bytes_per_s > 0) {
    corner = std::clamp(roof.flops_per_s / roofline.bytes_per_s, low, high);
    const double start = std::clamp(floor / roofline.bytes_per_s, low, corner);
    const double rate = std::min(start * roofline.bytes_per_s, roof.flops_per_s);
    path = strf("M%.1f,%.1fL", frame.px(start), frame.py(rate / unit.size));
  } else {
    path = "M";
  }
  const double y = frame.py(roof.flops_per_s / unit.size);
  path += strf("%.1f,%.1fH%.1f", frame.px(corner), y, frame.px(high));
  const std::string name = roof.name + ": " + format_si(roof.flops_per_s) + "FLOP/s";
  labels.keep_free({frame.right - text_width(name), y - 17, frame.right, y});
  return "<path class=\"roof\" d=\"" + path + "\"/>" +
         strf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", frame.right, y - 5) + html_escape(name) +
         "</text>\n";
}

std::string tip_of(const RooflineChart::Work& work) {
  return html_escape(work.name) + strf(": %.3g FLOP a byte, %sFLOP/s, %s", intensity(work),
                                       format_si(work.flops / work.seconds).c_str(),
                                       format_seconds(work.seconds).c_str());
}
}  // namespace

Figure roofline_chart(const RooflineChart& roofline) {
  const Unit unit = unit_of(highest_roof(roofline));
  const Frame frame = frame_of(roofline, unit);
  Figure figure{.title = roofline.title, .note = unit.name, .legend = {}, .width = frame.width};
  figure.height = frame.height;
  figure.wide = true;
  if (roofline.bytes_per_s > 0) figure.note += ", memory at " + format_si(roofline.bytes_per_s) + "B/s";
  figure.body = left_axis(frame) + bottom_axis(frame, "FLOP a byte", true);
  Labels labels(frame);
  for (const auto& roof : roofline.roofs) figure.body += draw_roof(frame, roofline, roof, unit, labels);
  const auto at = [&](const RooflineChart::Work& work) {
    return std::pair{frame.px(intensity(work)), frame.py(work.flops / work.seconds / unit.size)};
  };
  for (const auto& work : roofline.work)
    if (can_show(work)) {
      const auto [x, y] = at(work);
      labels.keep_free({x - 6, y - 6, x + 6, y + 6});
    }
  int next = 0;
  for (const auto& work : roofline.work) {
    if (!can_show(work)) continue;
    const int colour = next % kColours, shape = next / kColours + next;  // a pair that comes again late
    const auto [x, y] = at(work);
    figure.body += "<g><title>" + tip_of(work) + "</title>" + marker(shape, colour, x, y, 4.5) + "</g>" +
                   labels.place(x, y, work.name) + "\n";
    figure.legend.push_back({work.name, KeyKind::kMark, colour, shape});
    ++next;
  }
  return figure;
}

}  // namespace vitrail
