// Where heat maps, rooflines and timelines put their cells, roofs and spans, worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "telemetry/plot/plot.h"

namespace vitrail {
namespace {

TEST(HeatLayout, CellsGrowWithTheirTexts) {
  HeatMap map{
      .title = "m",
      .row_label = "r",
      .column_label = "c",
      .rows = {"a", "b"},
      .columns = {"x", "y"},
      .cells = {{1, 0, 0.61, 9, "12", "tip"}, {0, 1, 7, 0, "1", "more"}, {0, 0, 0.6, 0, "", "empty"}}};
  const Figure figure = heat_map(map);
  // Two cells of 44 beside a name of 6.1, a label of 18 and a margin of 12.
  EXPECT_NEAR(figure.width, 12 + 6.1 + 18 + 88 + 8, 1e-9);
  EXPECT_NEAR(figure.height, 8 + 88 + 24 + 18, 1e-9);
  EXPECT_EQ(figure.page_width, figure.width);
  EXPECT_NE(
      figure.body.find("<title>tip</title><rect class=\"c1\" x=\"36.6\" y=\"52.5\" width=\"43.0\" "
                       "height=\"43.0\" fill-opacity=\"0.61\"/><text class=\"on\" x=\"58.1\" y=\"77.5\""),
      std::string::npos)
      << figure.body;
  EXPECT_NE(figure.body.find("fill-opacity=\"1.00\"/>"), std::string::npos) << "strengths end at 1";
  EXPECT_NE(figure.body.find("<title>empty</title><rect class=\"c0\" x=\"36.6\" y=\"8.5\" width=\"43.0\" "
                             "height=\"43.0\" fill-opacity=\"0.60\"/></g>"),
            std::string::npos)
      << figure.body;
  map.cells[0].strength = 0.6;
  EXPECT_NE(heat_map(map).body.find("<text class=\"ink\" x=\"58.1\""), std::string::npos);
  map.cells[0].text = "0123456789";
  EXPECT_NEAR(heat_map(map).width, 12 + 6.1 + 18 + 2 * 69 + 8, 1e-9) << "61 for ten letters and 8";
  map.columns = {"a long name", "y"}, map.cells.clear(), map.row_label = map.column_label = "";
  EXPECT_NE(heat_map(map).body.find("rotate(-90)"), std::string::npos);
  EXPECT_NEAR(heat_map(map).height, 8 + 88 + 11 * 6.1 + 12, 1e-9);
}

TEST(RoofLayout, UnitsTipsAndCorner) {
  RooflineChart chart{
      .title = "r", .roofs = {{"peak", 100e9}}, .bytes_per_s = 10e9, .work = {{"a<b", 2e9, 1e9, 0.5}}};
  const Figure figure = roofline_chart(chart);
  EXPECT_EQ(figure.note, "GFLOP/s, memory at 10.0 GB/s");
  EXPECT_NE(figure.body.find("<title>a&lt;b: 2 FLOP a byte, 4.00 GFLOP/s, 500 ms</title>"), std::string::npos)
      << figure.body;
  EXPECT_NE(figure.body.find(">peak: 100 GFLOP/s</text>"), std::string::npos);
  // x: 1.6 to 40 is shown as 1 to 50, y: 4 to 100 as 2 to 100; the corner lies at 10 FLOP a byte.
  const double left = 50, right = 842, bottom = 318, top = 24;
  const double corner = left + std::log(10.0) / std::log(50.0) * (right - left);
  EXPECT_NE(figure.body.find(strf("L%.1f,%.1fH%.1f\"/>", corner, top, right)), std::string::npos)
      << figure.body;
  const double mark = bottom - std::log(4.0 / 2) / std::log(100.0 / 2) * (bottom - top);
  EXPECT_NE(figure.body.find(strf("cy=\"%.1f\" r=\"4.5\"", mark)), std::string::npos) << figure.body;
  chart.roofs[0].flops_per_s = 1e13;
  EXPECT_TRUE(roofline_chart(chart).note.starts_with("TFLOP/s"));
  chart.roofs[0].flops_per_s = 0.99e13;
  EXPECT_TRUE(roofline_chart(chart).note.starts_with("GFLOP/s"));
  for (const auto& lacks : {RooflineChart::Work{"x", 0, 1, 1}, {"x", 1, 0, 1}, {"x", 1, 1, 0}}) {
    chart.work = {lacks};
    EXPECT_TRUE(roofline_chart(chart).legend.empty());
  }
  chart.work.assign(9, {"w", 1e9, 1e9, 1});
  const Figure many = roofline_chart(chart);
  EXPECT_EQ(many.legend[8].colour, 0);
  EXPECT_EQ(many.legend[8].shape, 9) << "the first colour comes again with another shape";
  EXPECT_EQ(many.legend[7].shape, 7);
  size_t names = 0;
  for (size_t at = many.body.find("<text class=\"ink\""); at != std::string::npos;
       at = many.body.find("<text class=\"ink\"", at + 1))
    ++names;
  EXPECT_GE(names, 1u);
  EXPECT_LT(names, 9u) << "those that would meet another are left to the legend";
  // Without work, a quarter of the corner to four times it: 2.5 to 40, shown as 2 to 50; one roof lies in the
  // middle.
  const std::string roof =
      roofline_chart({.title = "", .roofs = {{"peak", 100e9}}, .bytes_per_s = 10e9, .work = {}}).body;
  EXPECT_NE(roof.find(strf("%.1f,171.0H842.0", left + std::log(5.0) / std::log(25.0) * (right - left))),
            std::string::npos)
      << roof;
}

TEST(TimelineLayout, SpansLieInTheirLanes) {
  Timeline line{.title = "t",
                .lanes = {"a", "b"},
                .kinds = {"k"},
                .spans = {{0, 0, 0, 0.5, "first"},
                          {1, 0, 0.5, 1, "F"},
                          {2, 0, 0, 1, "no lane"},
                          {0, 0, 1, 0.5, "back"},
                          {1, 0, 0, 0, "dot"}}};
  const Figure figure = timeline_chart(line);
  EXPECT_EQ(figure.height, 12 + 52 + 42);
  // 20.1 to 842 is a second: 821.9 units; a lane of 26 has a bar of 20.8, 2.6 below its top.
  EXPECT_NE(
      figure.body.find("<title>first: k, 500 ms from 0 us</title><rect class=\"c0\" x=\"20.10\" y=\"14.6\" "
                       "width=\"410.35\" height=\"20.8\"/><text class=\"on\" x=\"225.6\" y=\"28.5\""),
      std::string::npos)
      << figure.body;
  EXPECT_NE(
      figure.body.find("<title>F: k, 500 ms from 500 ms</title><rect class=\"c0\" x=\"431.05\" y=\"40.6\""),
      std::string::npos)
      << figure.body;
  EXPECT_NE(
      figure.body.find(
          "<title>dot: k, 0 us from 0 us</title><rect class=\"c0\" x=\"20.10\" y=\"40.6\" width=\"0.40\""),
      std::string::npos)
      << figure.body;
  EXPECT_EQ(figure.body.find("no lane"), std::string::npos);
  EXPECT_EQ(figure.body.find("back"), std::string::npos);
  EXPECT_EQ(figure.legend.size(), 1u);
}

}  // namespace
}  // namespace vitrail
