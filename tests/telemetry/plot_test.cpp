#include "telemetry/plot/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/rng.h"
#include "stored_text.h"
#include "telemetry/page.h"
#include "telemetry/page_fault.h"

namespace vitrail {
namespace {

size_t count_of(const std::string& text, const std::string& piece) {
  size_t count = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

LineChart scaling() {
  Series measured{"measured", {}}, ideal{"ideal", {}}, predicted{"predicted", {}}, other{"two nodes", {}};
  for (const double ranks : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    const double speed = ranks / (1 + 0.03 * ranks);
    measured.points.push_back({ranks, speed, speed * 0.93, speed * 1.05});
    other.points.push_back({ranks, speed * 0.8, speed * 0.7, speed * 0.84});
    ideal.points.push_back({ranks, ranks});
    predicted.points.push_back({ranks, ranks / (1 + 0.025 * ranks)});
  }
  ideal.dashed = predicted.dashed = true;
  return {.title = "Speed-up",
          .x_label = "ranks",
          .y_label = "times one rank",
          .series = {measured, other, predicted, ideal},
          .log_y = true,
          .log_x = true,
          .x_ticks = {1, 2, 4, 8, 16},
          .wide = true};
}

BarChart groups(bool stacked, bool horizontal) {
  BarChart chart{.title = stacked ? "Time of a step <by part>" : "Time by device",
                 .x_label = "ranks",
                 .y_label = "ms",
                 .groups = {"1", "2", "4", "8 on two nodes", "16"},
                 .stacked = stacked,
                 .horizontal = horizontal};
  for (const char* name : {"compute", "exposed communication", "data", "imbalance"}) {
    BarSeries series{.name = name};
    for (size_t g = 0; g < chart.groups.size(); ++g) {
      series.values.push_back(4 + std::fabs(double{counter_uniform(g, chart.series.size())}) * 30);
      if (stacked) continue;
      series.low.push_back(series.values.back() * 0.9);
      series.high.push_back(series.values.back() * 1.2);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

BarChart layers() {
  BarChart chart{.title = "Time by layer", .x_label = "layer", .y_label = "ms", .stacked = true};
  for (int layer = 0; layer < 24; ++layer) chart.groups.push_back(std::to_string(layer));
  for (const char* name : {"attention", "MLP", "layer norm 1", "layer norm 2", "residual 1"})
    chart.series.push_back({.name = name, .values = std::vector<double>(24, 3)});
  return chart;
}

HeatMap heat() {
  HeatMap map{.title = "Images per second", .row_label = "batch", .column_label = "ranks"};
  map.rows = {"16", "64", "256"}, map.columns = {"1", "2", "4", "8"};
  for (size_t r = 0; r < 3; ++r)
    for (size_t c = 0; c < 4; ++c)
      map.cells.push_back(
          {r, c, static_cast<double>(r + c) / 5, 0, strf("%zu", 1000 * (r + 1) * (c + 1)), "tip"});
  return map;
}

RooflineChart roofline() {
  return {.title = "Roofline",
          .roofs = {{"f32 GEMM", 180e9}},
          .bytes_per_s = 22e9,
          .work = {{"qkv", 1e9, 3e6, 8e-3},
                   {"scores", 1e8, 8e6, 4e-3},
                   {"softmax", 2e6, 4e6, 5e-4},
                   {"context", 1e8, 8e6, 4.1e-3},
                   {"projection", 5e8, 1.5e6, 3.5e-3},
                   {"fc1", 1.2e9, 5e6, 8e-3},
                   {"GELU", 9e6, 5e6, 7e-4},
                   {"fc2", 1.2e9, 5e6, 8.1e-3},
                   {"layer norm 1", 1e6, 2e6, 2e-4},
                   {"layer norm 2", 1e6, 2e6, 2.1e-4},
                   {"not measured", 1e6, 2e6, 0}}};
}

Timeline timeline() {
  Timeline line{
      .title = "A step of a pipeline", .lanes = {"rank 0", "rank 1"}, .kinds = {"forward", "backward"}};
  for (size_t micro = 0; micro < 4; ++micro)
    for (size_t lane = 0; lane < 2; ++lane) {
      const double start = 1e-3 * static_cast<double>(micro * 3 + lane);
      line.spans.push_back({lane, 0, start, start + 1e-3, strf("F%zu", micro)});
      line.spans.push_back({lane, 1, start + 1e-3, start + 3e-3, strf("B%zu", micro)});
    }
  return line;
}

std::vector<Figure> gallery() {
  return {line_chart(scaling()),
          bar_chart(groups(false, false)),
          bar_chart(groups(true, false)),
          bar_chart(groups(true, true)),
          bar_chart(groups(false, true)),
          bar_chart(layers()),
          heat_map(heat()),
          roofline_chart(roofline()),
          timeline_chart(timeline())};
}

// PLOT_FOLDER keeps the figures for inspection.
TEST(Plot, EveryFigureIsWellFormedAsPageAndFile) {
  Page page("Figures");
  page.section("figures", "Figures");
  page.figures(gallery());
  const std::string html = page.text("");
  EXPECT_EQ(page_fault(html), "");
  const char* folder = std::getenv("PLOT_FOLDER");
  if (folder) std::ofstream(std::string(folder) + "/page.html") << html;
  int number = 0;
  for (const Figure& figure : gallery()) {
    const std::string svg = to_svg(figure);
    if (folder) std::ofstream(strf("%s/figure-%d.svg", folder, number++)) << svg;
    EXPECT_EQ(page_fault(svg), "") << figure.title;
    EXPECT_TRUE(svg.starts_with("<svg xmlns=")) << figure.title;
    for (const char* wrong : {"nan", "inf,", "inf\"", "<script", "url(", "href"})
      EXPECT_EQ(svg.find(wrong), std::string::npos) << figure.title << " has " << wrong;
    EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
  }
}

TEST(Plot, EveryFigureIsTheStoredOne) {
  std::string all;
  for (const Figure& figure : gallery()) {
    const std::string svg = to_svg(figure);
    all += svg.substr(svg.find("</style>")) + "\n";
  }
  for (size_t at = 0; (at = all.find("><", at)) != std::string::npos; at += 2) all.insert(at + 1, "\n");
  expect_stored("golden/told/figures.txt", all);
}

// Without data there is a figure without marks, not a fault.
TEST(Plot, NothingToDrawIsNoError) {
  for (const Figure& figure : {line_chart({}), bar_chart({}), bar_chart({.horizontal = true}), heat_map({}),
                               roofline_chart({}), timeline_chart({})}) {
    EXPECT_EQ(page_fault(to_html(figure)), "");
    EXPECT_EQ(to_svg(figure).find("nan"), std::string::npos);
  }
}

TEST(Plot, LinesHaveErrorBarsAndWhatIsExpectedIsDashed) {
  const Figure figure = line_chart(scaling());
  EXPECT_EQ(count_of(figure.body, "class=\"bar err"), 10u);
  EXPECT_EQ(count_of(figure.body, " dashed\""), 2u);
  ASSERT_EQ(figure.legend.size(), 4u);
  EXPECT_EQ(figure.legend[3].kind, KeyKind::kDashed);
  for (const char* tick : {">1<", ">2<", ">4<", ">8<", ">16<"})
    EXPECT_NE(figure.body.find(tick), std::string::npos) << tick;
}

TEST(Plot, AModelOfASeriesHasItsColour) {
  LineChart chart = scaling();
  chart.series[1].dashed = chart.series[1].follows = true;
  const Figure figure = line_chart(chart);
  ASSERT_EQ(figure.legend.size(), 4u);
  EXPECT_EQ(figure.legend[1].colour, figure.legend[0].colour);
  EXPECT_EQ(figure.legend[2].colour, figure.legend[0].colour + 1);
}

TEST(Plot, TheUnitOfAFileFollowsItsTitleWhateverItsFont) {
  EXPECT_NE(
      to_svg(line_chart(scaling())).find(">Speed-up<tspan class=\"note\" dx=\"8\">times one rank</tspan>"),
      std::string::npos);
}

// Returns the numbers of an attribute of all rectangles of a colour.
std::vector<double> numbers(const std::string& svg, int colour, const char* name) {
  std::vector<double> found;
  const std::string mark = strf("<rect class=\"c%d", colour);
  for (size_t at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1)) {
    const std::string key = strf(" %s=\"", name);
    found.push_back(std::stod(svg.substr(svg.find(key, at) + key.size())));
  }
  return found;
}

TEST(BarChart, StackedPartsFollowEachOtherAndSideBySideOnesBeginTogether) {
  BarChart chart{.groups = {"a"}, .series = {{"x", {10}}, {"y", {30}}}, .stacked = true};
  std::string svg = bar_chart(chart).body;
  EXPECT_NEAR(numbers(svg, 1, "height")[0], 3 * numbers(svg, 0, "height")[0], 0.05);
  EXPECT_NEAR(numbers(svg, 1, "y")[0] + numbers(svg, 1, "height")[0], numbers(svg, 0, "y")[0], 0.05);
  chart.stacked = false;
  svg = bar_chart(chart).body;
  EXPECT_NEAR(numbers(svg, 0, "y")[0] + numbers(svg, 0, "height")[0],
              numbers(svg, 1, "y")[0] + numbers(svg, 1, "height")[0], 0.05);
  EXPECT_NEAR(numbers(svg, 0, "x")[0] + numbers(svg, 0, "width")[0], numbers(svg, 1, "x")[0], 0.05);
  chart.horizontal = chart.stacked = true;
  svg = bar_chart(chart).body;
  EXPECT_NEAR(numbers(svg, 0, "x")[0] + numbers(svg, 0, "width")[0], numbers(svg, 1, "x")[0], 0.05);
}

// Labels of columns never overlap: they are turned or left out.
TEST(BarChart, ManyGroupsHaveFewerLabels) {
  BarChart chart{.groups = {}, .series = {{"x", std::vector<double>(400, 1)}}};
  for (int i = 0; i < 400; ++i) chart.groups.push_back(std::to_string(1000 + i));
  const std::string svg = bar_chart(chart).body;
  EXPECT_EQ(count_of(svg, "<rect"), 400u);
  EXPECT_LT(count_of(svg, "<text"), 40u);
  chart.groups.assign(400, "a name that is long");
  EXPECT_LT(count_of(bar_chart(chart).body, "<text"), 60u);
}

TEST(Roofline, WorkLiesUnderItsRoof) {
  const Figure figure = roofline_chart(
      {.roofs = {{"peak", 100e9}}, .bytes_per_s = 10e9, .work = {{"slow", 1e9, 1e9, 1}, {"none", 0, 1, 1}}});
  EXPECT_EQ(figure.legend.size(), 1u) << "what has no FLOPs has no place";
  // The corner lies at 10 FLOP a byte; the roof is flat from there to the right end.
  const size_t roof = figure.body.find("<path class=\"roof\" d=\"M");
  ASSERT_NE(roof, std::string::npos);
  const std::string corner = figure.body.substr(figure.body.find('L', roof) + 1);
  const double y = std::stod(corner.substr(corner.find(',') + 1));
  const double mark = std::stod(figure.body.substr(figure.body.find("cy=\"") + 4));
  EXPECT_LT(y, mark);
}

// sRGB as light, and as it is seen by eyes that lack a kind of cones (Machado, Oliveira and Fernandes 2009).
using Rgb = std::array<double, 3>;
constexpr double kSight[4][3][3] = {
    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

Rgb light_of(const std::string& hex) {
  Rgb light;
  for (size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    light[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return light;
}

// CIE L*a*b*.
Rgb lab_of(const std::string& hex, const double (&sight)[3][3]) {
  const Rgb light = light_of(hex);
  Rgb seen{};
  for (size_t i = 0; i < 3; ++i)
    seen[i] = std::clamp(sight[i][0] * light[0] + sight[i][1] * light[1] + sight[i][2] * light[2], 0.0, 1.0);
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.95047);
  const double y = f(0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]);
  const double z = f((0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double luminance(const std::string& hex) {
  const Rgb light = light_of(hex);
  return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
}

TEST(Palette, ColoursStayApartForEveryEyeAndFromTheBackground) {
  constexpr double kLeastDistance = 15, kLeastContrast = 3;  // the latter is WCAG's for graphics
  for (const Palette* palette : {&kLightPalette, &kDarkPalette})
    for (size_t a = 0; a < kColours; ++a) {
      const double one = luminance(palette->colours[a]), back = luminance(palette->back);
      EXPECT_GE((std::max(one, back) + 0.05) / (std::min(one, back) + 0.05), kLeastContrast)
          << palette->colours[a];
      for (size_t b = 0; b < a; ++b)
        for (const auto& sight : kSight) {
          const Rgb p = lab_of(palette->colours[a], sight), q = lab_of(palette->colours[b], sight);
          EXPECT_GE(std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]), kLeastDistance)
              << palette->colours[a] << " " << palette->colours[b];
        }
    }
}

}  // namespace
}  // namespace vitrail
