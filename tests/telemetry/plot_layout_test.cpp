// Where figures put what they draw: ticks, bars, marks, names and legends, worked out from the frame by hand.
// A frame of 526 x 250 has its area from 50 to 508 and from 12 to 208; a wide one is 860 x 360.
#include <gtest/gtest.h>

#include <cmath>

#include "telemetry/format.h"
#include "telemetry/plot/axis.h"
#include "telemetry/plot/frame.h"
#include "telemetry/plot/plot.h"

namespace vitrail {
namespace {

std::string ticks_between(double low, double high, bool logarithmic, int wanted = 5, bool round = true) {
  ChartAxis axis(logarithmic);
  axis.include(low), axis.include(high);
  axis.finish(wanted, round);
  std::string text;
  for (const Tick& tick : axis.ticks()) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

TEST(AxisTicks, OnEitherSideOfEachUnit) {
  const std::tuple<double, double, bool, const char*> rows[] = {
      {0, 1e10, false, "0 2G 4G 6G 8G 10G"},
      {0, 5e12, false, "0 1T 2T 3T 4T 5T"},
      {0, 5e15, false, "0 1e+15 2e+15 3e+15 4e+15 5e+15"},
      {0, 300000, false, "0 100k 200k 300k"},
      {0, 9999, false, "0 2000 4000 6000 8000 10k"},
      {9000, 9400, false, "9000 9100 9200 9300 9400"},
      {20000, 20004, false, "20000 20001 20002 20003 20004"},
      {-2, 3, false, "-2 -1 0 1 2 3"},
      {1000, 1001, false, "1000.0 1000.2 1000.4 1000.6 1000.8 1001.0"},
      {NAN, NAN, false, "0 0.2 0.4 0.6 0.8 1.0"},
      {NAN, NAN, true, "1 2 5 10"},
      {1, 1, true, "0.5 0.6 0.7 0.8 0.9 1 1.2 1.5 2"},
      {1, 999, true, "1 2 5 10 20 50 100 200 500 1000"},
      {1, 1000, true, "1 10 100 1000"},
      {1e3, 1e7, true, "1000 10k 100k 1M 10M"},
      {1e12, 1e15, true, "1T 10T 100T 1e+15"},
      {0, 10, true, "5 6 7 8 9 10 12 15 20"}};
  for (const auto& [low, high, logarithmic, text] : rows)
    EXPECT_EQ(ticks_between(low, high, logarithmic), text) << low << " to " << high;
  EXPECT_EQ(ticks_between(0.5, 2.5, false, 5, false), "0.5 1.0 1.5 2.0 2.5");
  EXPECT_EQ(ticks_between(0.4, 2.4, false, 5, false), "0.5 1.0 1.5 2.0");
  EXPECT_EQ(ticks_between(0, 9, false, 9), "0 1 2 3 4 5 6 7 8 9");
  EXPECT_EQ(ticks_between(2, 30, true, 5, false), "5 10 20")
      << "ends are no ticks unless the axis is rounded";
}

TEST(AxisTicks, ValuesBeyondTheLargestAreNotHeld) {
  const ChartAxis linear, logarithmic(true);
  EXPECT_TRUE(linear.holds(-1e200) && linear.holds(0));
  EXPECT_FALSE(linear.holds(1.1e200) || linear.holds(NAN));
  EXPECT_TRUE(logarithmic.holds(1e-200));
  EXPECT_FALSE(logarithmic.holds(0.9e-200) || logarithmic.holds(0) || logarithmic.holds(-1));
}

TEST(FigureParts, MarkersHaveSixShapes) {
  EXPECT_EQ(marker(0, 2, 10, 20, 2), "<circle class=\"c2 mark\" cx=\"10.0\" cy=\"20.0\" r=\"2.0\"/>");
  EXPECT_EQ(marker(6, 2, 10, 20, 2), marker(0, 2, 10, 20, 2));
  const char* paths[] = {"m-1.80,-1.80h3.60v3.60h-3.60z", "m0,-2.50l2.50,4.50h-5.00z",
                         "m0,-2.50l2.50,2.50l-2.50,2.50l-2.50,-2.50z", "m0,2.50l2.50,-4.50h-5.00z",
                         "m-2.00,-2.00h4.00l-4.00,4.00h4.00z"};
  for (int shape = 1; shape < 6; ++shape)
    EXPECT_EQ(marker(shape, 1, 10, 20, 2),
              std::string("<path class=\"c1 mark\" d=\"M10.0,20.0") + paths[shape - 1] + "\"/>");
}

TEST(FigureParts, NamesAndErrorBars) {
  EXPECT_EQ(shortened("abcd", 4), "abcd");
  EXPECT_EQ(shortened("abcde", 4), "abc…");
  EXPECT_EQ(shortened("éàèùô", 3), "éà…");
  EXPECT_NEAR(text_width("été"), 3 * 6.1, 1e-12);
  EXPECT_EQ(error_bar(10, 30, 20, 3, false),
            "<path class=\"bar err c3\" d=\"M10.0,30.0V20.0m-3.0,0h6.0M7.0,30.0h6.0\"/>");
  EXPECT_EQ(error_bar(10, 30, 50, 3, true),
            "<path class=\"bar err c3\" d=\"M30.0,10.0H50.0m0,-3.0v6.0M30.0,7.0v6.0\"/>");
  const std::tuple<double, const char*, double> units[] = {
      {9e-4, "us", 1e6}, {1e-3, "ms", 1e3},      {0.99, "ms", 1e3},       {1, "s", 1},
      {599, "s", 1},     {600, "min", 1.0 / 60}, {7199, "min", 1.0 / 60}, {7200, "h", 1.0 / 3600}};
  for (const auto& [seconds, name, rate] : units) {
    EXPECT_STREQ(time_unit(seconds).name, name) << seconds;
    EXPECT_EQ(time_unit(seconds).per_second, rate) << seconds;
  }
}

TEST(FigureParts, LegendsBreakIntoRows) {
  Figure figure{.title = "T",
                .note = "unit",
                .legend = {{"0123456789", KeyKind::kArea, 1}, {"0123456789", KeyKind::kDashed, 2}},
                .width = 300};
  // A key takes 22 + 6 + 61 + 16 = 105 beside a margin of 12: two fit 300, three do not.
  const auto rows = [&] {
    const std::string svg = to_svg(figure);
    return std::stod(svg.substr(svg.find("translate(0 ") + 12));
  };
  EXPECT_EQ(rows(), 12 + 26 + 18);
  figure.legend.push_back({"0123456789", KeyKind::kMark, 3, 0});
  EXPECT_EQ(rows(), 12 + 26 + 36);
  figure.legend.clear();
  EXPECT_EQ(rows(), 38);
  figure.title.clear();
  EXPECT_EQ(rows(), 12);
  figure.height = 100;
  const std::string svg = to_svg(figure);
  EXPECT_NE(svg.find("width=\"300\" height=\"112\" viewBox=\"0 0 300.0 112.0\""), std::string::npos)
      << svg.substr(0, 200);
  figure.legend = {{"l", KeyKind::kLine, 1, 0},
                   {"p", KeyKind::kLine, 1, -1},
                   {"d", KeyKind::kDashed, 2, 0},
                   {"a", KeyKind::kArea, 3},
                   {"m", KeyKind::kMark, 4, 0}};
  const char* samples[] = {
      ("<path class=\"line c1\" d=\"M1.0,5.0h20.0\"/><circle class=\"c1 mark\" cx=\"11.0\" cy=\"5.0\" "
       "r=\"3.2\"/></svg>l"),
      "<path class=\"line c1\" d=\"M1.0,5.0h20.0\"/></svg>p",
      "<path class=\"line c2 dashed\" d=\"M1.0,5.0h20.0\"/></svg>d",
      "<rect class=\"c3\" x=\"4.0\" y=\"0.0\" width=\"14\" height=\"10.0\" rx=\"2\"/></svg>a",
      "10\"><circle class=\"c4 mark\" cx=\"11.0\" cy=\"5.0\" r=\"3.2\"/></svg>m"};
  for (const char* sample : samples)
    EXPECT_NE(to_html(figure).find(sample), std::string::npos) << sample << to_html(figure);
  figure.legend.clear(), figure.title = "T";
  EXPECT_NE(to_svg(figure).find("<text class=\"title ink\" x=\"12\" y=\"24\">T"), std::string::npos);
  figure.title = "T", figure.wide = true, figure.page_width = 77;
  const std::string html = to_html(figure);
  EXPECT_NE(html.find("<figure class=\"chart wide\"><figcaption>T <small>unit</small></figcaption>"),
            std::string::npos);
  EXPECT_NE(html.find("style=\"width:77px;max-width:100%\" viewBox=\"0 0 300.0 100.0\""), std::string::npos);
}

TEST(BarLayout, UsesThreeQuartersOfItsRoom) {
  const Figure one = bar_chart({.title = "",
                                .x_label = "x",
                                .y_label = "ms",
                                .groups = {"a"},
                                .series = {{.name = "s", .values = {10}, .low = {8}, .high = {12}}}});
  // Of 458 the bar has 0.74; the axis reaches from 0 to 12 with a step of 5: 0 to 15.
  EXPECT_NE(one.body.find("<g><title>a: s 10 ms</title><rect class=\"c0\" x=\"109.54\" y=\"77.33\" "
                          "width=\"338.92\" height=\"130.67\"/>"),
            std::string::npos)
      << one.body;
  EXPECT_NE(one.body.find("class=\"bar err c7\" d=\"M279.0,103.5V51.2"), std::string::npos) << one.body;
  EXPECT_NE(one.body.find("<text x=\"279.0\" y=\"224.0\" text-anchor=\"middle\">a</text>"),
            std::string::npos);
  EXPECT_NE(one.body.find("<text x=\"279.0\" y=\"242.0\" text-anchor=\"middle\">x</text>"),
            std::string::npos);
  EXPECT_TRUE(one.legend.empty()) << "one series needs none";
  EXPECT_EQ(one.note, "ms");
  EXPECT_EQ(one.height, 208 + 24 + 18);
  const Figure rows =
      bar_chart({.title = "",
                 .x_label = "",
                 .y_label = "ms",
                 .groups = {"a", "b"},
                 .series = {{.name = "s", .values = {10, NAN}},
                            {.name = "t", .values = {NAN, -5}, .low = {}, .high = {}, .tips = {"", "tip"}}},
                 .stacked = true,
                 .horizontal = true,
                 .wide = true});
  EXPECT_EQ(rows.height, 12 + 44 + 42);
  EXPECT_EQ(rows.note, "");
  EXPECT_EQ(rows.legend.size(), 2u);
  EXPECT_EQ(rows.legend[1].kind, KeyKind::kArea);
  // Names of one letter: 20.1 to 842, and -5 to 10 along it.
  EXPECT_NE(
      rows.body.find("<rect class=\"c0 gap\" x=\"294.07\" y=\"14.86\" width=\"547.93\" height=\"16.28\"/>"),
      std::string::npos)
      << rows.body;
  EXPECT_NE(rows.body.find("<g><title>tip</title><rect class=\"c1 gap\" x=\"20.10\" y=\"36.86\" "
                           "width=\"273.97\" height=\"16.28\"/>"),
            std::string::npos)
      << rows.body;
  const Figure beside = bar_chart({.title = "",
                                   .x_label = "",
                                   .y_label = "",
                                   .groups = {"a"},
                                   .series = {{.name = "s", .values = {1}}, {.name = "t", .values = {1}}},
                                   .horizontal = true});
  EXPECT_EQ(beside.height, 12 + 28 + 42) << "10 and 9 for each of two";
  EXPECT_EQ(beside.body.find(" gap"), std::string::npos);
  const std::vector<double> ones(30, 1);
  const auto named = [&](const char* name) {
    return bar_chart({.title = "",
                      .x_label = "",
                      .y_label = "",
                      .groups = std::vector<std::string>(30, name),
                      .series = {{.name = "", .values = ones}}})
        .body;
  };
  EXPECT_EQ(named("123456").find("rotate"), std::string::npos) << "36.6 wide: left out, not turned";
  EXPECT_NE(named("1234567").find("rotate(-35)"), std::string::npos) << "42.7 wide";
}

TEST(LineLayout, MarksAreDrawnForFewPoints) {
  const auto chart = [](int count) {
    Series series{.name = "s", .points = {}};
    for (int i = 0; i < count; ++i) series.points.push_back({static_cast<double>(i), 1.0 * i});
    return line_chart({.title = "t",
                       .x_label = "x",
                       .y_label = "y",
                       .series = {series, {.name = "only marks", .points = {{0, 1}}, .line = false}}});
  };
  EXPECT_NE(chart(40).body.find("<title>s: 39 at 39</title>"), std::string::npos);
  EXPECT_EQ(chart(41).body.find("<title>s: "), std::string::npos);
  EXPECT_EQ(chart(40).legend[0].shape, 0);
  EXPECT_EQ(chart(41).legend[0].shape, -1);
  EXPECT_EQ(chart(40).legend[1].kind, KeyKind::kMark);
  EXPECT_EQ(chart(40).legend[1].colour, 1);
  EXPECT_EQ(chart(40).note, "y");
  const Figure from = line_chart({.title = "",
                                  .x_label = "",
                                  .y_label = "",
                                  .series = {{.name = "s", .points = {{1, 8, 6, 10}, {2, 9}}}},
                                  .from_zero = true});
  EXPECT_NE(from.body.find(">0<"), std::string::npos) << "the y axis begins at 0";
  // The axis is 0 to 10 from 208 to 12; the first point lies at the left end.
  EXPECT_NE(from.body.find("M50.0,51.2L508.0,31.6"), std::string::npos) << from.body;
  EXPECT_NE(from.body.find("d=\"M50.0,90.4V12.0m"), std::string::npos) << from.body;
  EXPECT_EQ(line_chart({.title = "", .x_label = "", .y_label = "", .series = {}, .wide = true}).width, 860);
  // 1.5 to 8.5 is shown from 0 to 10.
  const Figure round = line_chart(
      {.title = "", .x_label = "", .y_label = "", .series = {{.name = "s", .points = {{0, 1.5}, {1, 8.5}}}}});
  EXPECT_NE(round.body.find("M50.0,178.6L508.0,41.4"), std::string::npos) << round.body;
}

TEST(LineLayout, DecimatesBeyondTheLimitAlone) {
  std::vector<Point> points;
  points.reserve(10);
  for (int i = 0; i < 10; ++i) points.push_back({1.0 * i, i % 2 ? 1.0 : -1.0});
  EXPECT_EQ(decimate(points, 10).size(), 10u);
  const auto kept = decimate(points, 6);  // two intervals of four between the ends
  ASSERT_EQ(kept.size(), 6u);
  const double x[] = {0, 1, 2, 5, 6, 9};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(kept[i].x, x[i]) << i;
  EXPECT_EQ(decimate(points, 3).size(), 10u) << "fewer than four are no limit";
  const auto calm = smooth({{0, 1}, {1, 3}}, 0.5);
  EXPECT_EQ(calm[1].y, 3) << "a span below one smooths nothing";
}

}  // namespace
}  // namespace vitrail
