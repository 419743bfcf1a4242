
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "telemetry/plot/axis.h"
#include "telemetry/plot/plot.h"

namespace vitrail {
namespace {

std::string labels(const ChartAxis& axis) {
  std::string text;
  for (const Tick& tick : axis.ticks()) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

TEST(Axis, RoundTicks) {
  struct Row {
    double low, high;
    bool logarithmic, round;
    const char* ticks;
  };
  const Row rows[] = {{0.13, 2.31, false, true, "0 0.5 1.0 1.5 2.0 2.5"},
                      {1, 5000, false, false, "1000 2000 3000 4000 5000"},
                      {0, 60000, false, true, "0 20k 40k 60k"},
                      {0, 2e-4, false, true, "0 5e-05 0.0001 0.00015 0.0002"},
                      {0, 4e6, false, true, "0 1M 2M 3M 4M"},
                      {0.3, 4, true, true, "0.2 0.5 1 2 5"},
                      {1e-4, 1e3, true, true, "0.0001 0.01 1 100 10k"},
                      {2e9, 3e11, true, true, "2G 5G 10G 20G 50G 100G 200G 500G"},
                      {1.1, 1.9, true, true, "1 1.2 1.5 2"},
                      {7, 7, false, true, "6.0 6.5 7.0 7.5 8.0"},
                      {0, 0, false, true, "-1.0 -0.5 0 0.5 1.0"}};
  for (const Row& row : rows) {
    ChartAxis axis(row.logarithmic);
    axis.include(row.low);
    axis.include(row.high);
    axis.finish(5, row.round);
    EXPECT_EQ(labels(axis), row.ticks) << row.low << " " << row.high;
  }
}

// Whatever the values, every tick and value lies on the axis and the number of ticks stays small.
TEST(Axis, HoldsItsValues) {
  const double ends[] = {-1e199, -5e7, -3.7, -1e-12, 0, 1e-199, 2e-9, 0.999, 1, 17, 12345.678, 9e18, 1e199};
  for (const bool logarithmic : {false, true})
    for (const double low : ends)
      for (const double high : ends) {
        if (low > high) continue;
        ChartAxis axis(logarithmic);
        axis.include(low);
        axis.include(high);
        axis.include(NAN);
        axis.include(INFINITY);
        axis.finish(5, true);
        EXPECT_LE(axis.ticks().size(), 12u) << low << " " << high;
        EXPECT_GE(axis.ticks().size(), 2u) << low << " " << high;
        for (const double value : {low, high})
          if (axis.holds(value)) {
            EXPECT_GE(axis.position(value), -1e-6) << low << " " << high << logarithmic;
            EXPECT_LE(axis.position(value), 1 + 1e-6) << low << " " << high << logarithmic;
          }
        for (const Tick& tick : axis.ticks()) {
          EXPECT_GE(axis.position(tick.value), -1e-6);
          EXPECT_LE(axis.position(tick.value), 1 + 1e-6);
        }
      }
}

TEST(Decimate, KeepsSpikesEndsAndOrder) {
  std::vector<Point> points;
  points.reserve(100000);
  for (int i = 0; i < 100000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 1e-3)});
  points[54321].y = 50;
  points[77777].y = -50;
  points[1000].y = NAN;
  const auto kept = decimate(points, 600);
  EXPECT_LE(kept.size(), 600u);
  EXPECT_GE(kept.size(), 300u);
  EXPECT_EQ(kept.front().x, 0);
  EXPECT_EQ(kept.back().x, 99999);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(), [](auto& a, auto& b) { return a.x < b.x; }));
  for (const double spike : {54321.0, 77777.0})
    EXPECT_TRUE(std::any_of(kept.begin(), kept.end(), [&](auto& p) { return p.x == spike; })) << spike;
  EXPECT_EQ(decimate({{1, 1}, {2, 2}}, 600).size(), 2u);
}

TEST(Smooth, StartsAtTheFirstValueAndIgnoresGaps) {
  const auto calm = smooth({{1, 4}, {2, NAN}, {3, 8}}, 2);
  EXPECT_DOUBLE_EQ(calm[0].y, 4);
  EXPECT_TRUE(std::isnan(calm[1].y));
  EXPECT_DOUBLE_EQ(calm[2].y, (4 * 0.5 + 8) / 1.5);
}

TEST(Axis, MarksTheValuesThatAreAskedFor) {
  ChartAxis axis(true);
  for (const double ranks : {1.0, 8.0}) axis.include(ranks);
  axis.finish(5, false);
  axis.mark({1, 2, 4, 8, 16});
  EXPECT_EQ(labels(axis), "1 2 4 8");
  EXPECT_DOUBLE_EQ(axis.position(2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(axis.value_at(1.0 / 3), 2);
}

// Returns the numbers of the "d" of the first line with this class.
std::string path_of(const std::string& html, const std::string& type) {
  const size_t at = html.find("<path class=\"line " + type + "\" d=\"");
  if (at == std::string::npos) return "";
  const size_t from = html.find(" d=\"", at) + 4;
  return html.substr(from, html.find('"', from) - from);
}

TEST(LineChart, PlacesPointsBetweenTheAxes) {
  const std::string html =
      to_html(line_chart({"Loss", "step", "", {{"train", {{0, 0}, {50, 5}, {100, 10}}}}}));
  EXPECT_EQ(path_of(html, "c0"), "M50.0,208.0L279.0,110.0L508.0,12.0");
  EXPECT_EQ(html.find("legend"), std::string::npos);
  EXPECT_NE(html.find("data-values=\"50.0,0,0;279.0,50,5;508.0,100,10\""), std::string::npos);
}

TEST(LineChart, GapsInterruptAndLonelyPointsShow) {
  const std::string html = to_html(
      line_chart({"x", "step", "", {{"a", {{0, 0}, {1, NAN}, {2, 10}, {3, INFINITY}, {4, 10}, {5, 0}}}}}));
  EXPECT_EQ(path_of(html, "c0"), "M50.0,208.0h0M233.2,12.0h0M416.4,12.0L508.0,208.0");
}

TEST(LineChart, FaintSeriesShareTheNextOnesColour) {
  const std::string html = to_html(line_chart(
      {"x", "step", "", {{"raw", {{0, 1}, {1, 2}}, true}, {"a", {{0, 1}, {1, 2}}}, {"b", {{0, 2}}}}}));
  EXPECT_FALSE(path_of(html, "c0 faint").empty());
  EXPECT_FALSE(path_of(html, "c0").empty());
  EXPECT_FALSE(path_of(html, "c1").empty());
  EXPECT_EQ(html.find(">raw<"), std::string::npos);
}

TEST(LineChart, NothingToShowIsNoError) {
  EXPECT_NE(to_html(line_chart({"x", "step", "", {{"a", {}}}, true})).find("<svg"), std::string::npos);
  EXPECT_EQ(to_html(line_chart({"x", "step", "", {{"a", {{1, NAN}, {NAN, 2}}}}})).find("nan"),
            std::string::npos);
}

}  // namespace
}  // namespace vitrail
