// Draws a timeline as SVG: spans in rows.
#include <algorithm>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/html.h"
#include "telemetry/plot/frame.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

namespace {
constexpr double kLane = 26, kLeastLane = 6, kMostHeight = 1400;

std::string draw(const Frame& frame, const Timeline& timeline, const Timeline::Span& span,
                 const TimeUnit& unit, double lane) {
  const double from = frame.px(span.start_s * unit.per_second), to = frame.px(span.end_s * unit.per_second);
  const double y = frame.top + lane * static_cast<double>(span.lane) + lane * 0.1;
  const std::string kind = span.kind < timeline.kinds.size() ? timeline.kinds[span.kind] + ", " : "";
  std::string out = "<g><title>" + html_escape(span.name + ": " + kind) +
                    strf("%s from %s</title>", format_seconds(span.end_s - span.start_s).c_str(),
                         format_seconds(span.start_s).c_str());
  const double width = std::max(to - from, 0.4);  // what is short is still seen
  out += strf("<rect class=\"c%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"/>",
              static_cast<int>(span.kind % kColours), from, y, width > 3 ? width - 0.6 : width, lane * 0.8);
  if (lane >= 16 && text_width(span.name) + 6 < width)
    out += strf("<text class=\"on\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (from + to) / 2,
                y + lane * 0.4 + 3.5) +
           html_escape(span.name) + "</text>";
  return out + "</g>\n";
}
}  // namespace

Figure timeline_chart(const Timeline& timeline) {
  double end = 0;
  for (const Timeline::Span& span : timeline.spans) end = std::max(end, span.end_s);
  const TimeUnit unit = time_unit(end);
  Frame frame(false, false, true);
  frame.x.include(0);
  frame.x.include(end * unit.per_second);
  frame.x.finish(9, false);
  frame.fit_labels(timeline.lanes);
  const auto lanes = static_cast<double>(std::max<size_t>(timeline.lanes.size(), 1));
  const double lane = std::clamp(kMostHeight / lanes, kLeastLane, kLane);
  frame.bottom = frame.top + lane * lanes;
  Figure figure{.title = timeline.title, .note = "", .legend = {}, .width = frame.width};
  figure.height = frame.bottom + 42;
  figure.wide = true;
  for (size_t k = 0; k < timeline.kinds.size(); ++k)
    figure.legend.push_back({timeline.kinds[k], KeyKind::kArea, static_cast<int>(k % kColours)});
  figure.body = bottom_axis(frame, unit.name, true) + row_names(frame, timeline.lanes, lane);
  for (const Timeline::Span& span : timeline.spans)
    if (span.lane < timeline.lanes.size() && span.end_s >= span.start_s)
      figure.body += draw(frame, timeline, span, unit, lane);
  return figure;
}

}  // namespace vitrail
