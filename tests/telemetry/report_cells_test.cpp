// The cells of a report's tables, of its images and events, and what a page puts around them.
#include <gtest/gtest.h>

#include "base/error.h"
#include "telemetry/confusion_map.h"
#include "telemetry/html.h"
#include "telemetry/report.h"

namespace vitrail {
namespace {

bool shows(const std::string& html, const std::string& part) {
  return html.find(part) != std::string::npos;
}

size_t times_in(const std::string& text, const std::string& piece) {
  size_t count = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

// Four images of class 0: two right, one taken for class 1 with the right one among five, one not.
TEST(ReportCells, ClassesByHand) {
  Report report;
  report.classes = {"cat"};
  report.confusion = ConfusionMatrix(2);
  report.confusion->add(0, 0, true), report.confusion->add(0, 0, true);
  report.confusion->add(0, 1, true), report.confusion->add(0, 1, false);
  report.confusion->add(1, 1, true);
  const std::string html = render_report(report);
  EXPECT_TRUE(shows(
      html,
      "<tr><td>cat</td><td class=\"n\" data-key=\"4\">4</td><td class=\"n\" data-key=\"0.5\">50.00 %</td>"
      "<td class=\"n\" data-key=\"0.75\">75.00 %</td><td class=\"n\" data-key=\"1\">100.00 %</td>"
      "<td class=\"n\" data-key=\"0.666667\">66.67 %</td></tr>"))
      << html;
  EXPECT_TRUE(shows(
      html,
      "<tr><td>class 1</td><td class=\"n\" data-key=\"1\">1</td><td class=\"n\" data-key=\"1\">100.00 %</td>"
      "<td class=\"n\" data-key=\"1\">100.00 %</td><td class=\"n\" data-key=\"0.333333\">33.33 %</td>"
      "<td class=\"n\" data-key=\"0.5\">50.00 %</td></tr>"));
  EXPECT_TRUE(shows(html,
                    "<tr><td>cat</td><td>class 1</td><td class=\"n\" data-key=\"2\">2</td><td class=\"n\" "
                    "data-key=\"0.5\">50.00 %</td></tr>"));
  EXPECT_TRUE(
      shows(html, "<th scope=\"col\" class=\"n\"><button type=\"button\">top-1 (recall)</button></th>"));
  EXPECT_FALSE(shows(html, "The worst"));
}

TEST(ReportCells, LabelsByHand) {
  Report report;
  report.multi_label = MultiLabelResult{
      .classes = {
          {.positives = 3, .average_precision = 0.5, .precision = 0.25, .recall = 0.75, .f1 = 0.375}}};
  EXPECT_TRUE(shows(
      render_report(report),
      "<tr><td>class 0</td><td class=\"n\" data-key=\"3\">3</td><td class=\"n\" data-key=\"0.5\">50.00 %</td>"
      "<td class=\"n\" data-key=\"0.25\">25.00 %</td><td class=\"n\" data-key=\"0.75\">75.00 %</td>"
      "<td class=\"n\" data-key=\"0.375\">37.50 %</td></tr>"));
}

// The worst 2,000 of more classes, and at most 12 pairs beside a map, 20 without.
TEST(ReportCells, ManyRowsAreCut) {
  const auto confused = [](int64_t classes) {
    Report report;
    report.confusion = ConfusionMatrix(classes);
    for (int64_t c = 0; c < classes; ++c) {
      report.confusion->add(c, c, true);
      if (c >= classes - 30) report.confusion->add(c, (c + 1) % classes, true);
    }
    return render_report(report);
  };
  const auto pairs = [](const std::string& html) {
    const size_t from = html.find("Most confused");
    return times_in(html.substr(from, html.find("</table>", from) - from), "<tr>") - 1;
  };
  EXPECT_EQ(pairs(confused(kMostHeatMapClasses)), 12u);
  EXPECT_EQ(pairs(confused(kMostHeatMapClasses + 1)), 20u);
  EXPECT_FALSE(shows(confused(kMostHeatMapClasses + 1), "aria-label=\"Confusion matrix\""));
  const std::string whole = confused(2000);
  EXPECT_FALSE(shows(whole, "The worst"));
  const size_t table = whole.find("<section id=\"classes\">");
  EXPECT_LT(whole.find("<td>class 0</td>", table), whole.find("<td>class 1999</td>", table))
      << "in their order";
  const std::string cut = confused(2001);
  EXPECT_TRUE(shows(cut, "The worst 2000 of 2001 classes.")) << "one of those that are all right is left out";
  const size_t rows = cut.find("<section id=\"classes\">");
  EXPECT_NE(cut.find("<td>class 2000</td>", rows), std::string::npos);
  EXPECT_EQ(cut.find("<td>class 1970</td>", rows), std::string::npos);
}

TEST(ReportCells, MemoryAndEvents) {
  Report report;
  report.memory = {{"a", 2048, 2048}, {"b", 1024, 3072}, {"c", 4096, 1024}};
  report.events = {{"resume", "text", 1200, 0}, {"odd", "", 1, 253402300800.0}};
  report.machine = {{"processor", "Z80"}};
  report.config = "{}";
  std::string html = render_report(report);
  for (const char* part :
       {"<td>a</td><td class=\"n\">2.00 KiB</td><td class=\"n\">2.00 KiB</td><td class=\"n\">none</td>",
        "<td>b</td><td class=\"n\">1.00 KiB</td><td class=\"n\">3.00 KiB</td><td class=\"n\">+2.00 KiB</td>",
        "<td>c</td><td class=\"n\">4.00 KiB</td><td class=\"n\">1.00 KiB</td><td class=\"n\">−3.00 KiB</td>",
        "<td>total</td><td class=\"n\">7.00 KiB</td><td class=\"n\">6.00 KiB</td><td class=\"n\">−1.00 "
        "KiB</td>",
        "<td class=\"n\" data-key=\"1200\">1,200</td><td>resume</td><td>text</td><td>1970-01-01 00:00:00 "
        "UTC</td>",
        "<td>odd</td><td></td><td></td>", "<td>processor</td><td>Z80</td>",
        "<details><summary>as resolved</summary><pre>{}</pre></details>"})
    EXPECT_TRUE(shows(html, part)) << part;
  report.memory.resize(1);
  EXPECT_FALSE(shows(render_report(report), "<td>total</td>"));
  report.events.assign(500, {"step", "", 1, 0});
  EXPECT_FALSE(shows(render_report(report), "The last 500"));
  report.events.insert(report.events.begin(), {"first", "", 0, 0});
  html = render_report(report);
  EXPECT_TRUE(shows(html, "The last 500 of 501."));
  EXPECT_FALSE(shows(html, "<td>first</td>"));
}

std::vector<uint8_t> header_of_width(uint32_t width) {
  std::vector<uint8_t> png(24);
  for (size_t i = 0; i < 4; ++i) png[16 + i] = static_cast<uint8_t>(width >> (24 - 8 * i));
  return png;
}

TEST(ReportCells, ImagesSayWhatTheyAre) {
  Report report;
  report.best = {{header_of_width(131), "a.png", "cat", "cat", 0.75}};
  report.worst = {{header_of_width(132), "b.png", "cat", "dog", 0.5}, {{1, 2}, "c.png", "cat", "dog", 1}};
  const std::string html = render_report(report);
  EXPECT_TRUE(shows(html, "<h3>Most certain and right</h3>"));
  EXPECT_TRUE(shows(html, "alt=\"a.png\" title=\"a.png\"><b class=\"yes\">✓ cat</b> 75.00 %</figure>"));
  EXPECT_TRUE(
      shows(html, "alt=\"b.png\" title=\"b.png\"><b class=\"no\">✗ dog</b> 50.00 %<br>is cat</figure>"));
  EXPECT_EQ(times_in(html, "<img class=\"small\""), 2u) << "narrower than 132 pixels, or not known";
  EXPECT_LT(html.find("Most certain and right"), html.find("Furthest from right"));
}

TEST(ReportCells, ConfusionMapsHaveCountsAndTips) {
  ConfusionMatrix matrix(2);
  for (int i = 0; i < 12000; ++i) matrix.add(0, 0, true);
  for (int i = 0; i < 9999; ++i) matrix.add(1, 0, true);
  const HeatMap map = confusion_map(matrix, {"cat", ""});
  ASSERT_EQ(map.cells.size(), 2u);
  EXPECT_EQ(map.cells[0].text, "12.0 K");
  EXPECT_EQ(map.cells[1].text, "9999");
  EXPECT_EQ(map.cells[0].colour, 0);
  EXPECT_EQ(map.cells[1].colour, 1);
  EXPECT_DOUBLE_EQ(map.cells[1].strength, 1);
  EXPECT_EQ(map.cells[1].tip, "class 1 → cat: 9,999 (100.00 %)");
  EXPECT_EQ(map.rows, (std::vector<std::string>{"cat", "class 1"}));
  EXPECT_EQ(map.columns, map.rows);
}

TEST(Page, PutsSectionsInOrder) {
  Page page("A & B");
  page.verdict(""), page.tiles({{"label", "value"}});
  page.section("one", "First"), page.section("two", "Second");
  page.heading("head"), page.paragraph("text"), page.note(""), page.note("small");
  page.pairs({{"k", "v"}}), page.figures({});
  const std::string html = page.text("foot");
  EXPECT_TRUE(shows(html, "<title>A &amp; B</title>"));
  EXPECT_FALSE(shows(html, "verdict\">"));
  EXPECT_TRUE(shows(html, "<div class=\"tile\"><b>value</b><span>label</span></div>"));
  EXPECT_FALSE(shows(html, "#one")) << "without content";
  EXPECT_TRUE(shows(html, "<a href=\"#two\">Second</a>"));
  EXPECT_TRUE(shows(
      html,
      "<section id=\"two\"><h2>Second</h2>\n<h3>head</h3>\n<p>text</p>\n<p class=\"note\">small</p>\n<div"));
  EXPECT_TRUE(shows(html, "<footer>foot</footer>"));
  EXPECT_FALSE(shows(html, "class=\"charts\">"));
  EXPECT_THROW(Page("x").paragraph("before a section"), Error);
  HtmlTable wrong{{{"a"}, {"b"}}, {{{"1", ""}}}};
  EXPECT_THROW(html_table(wrong), Error);
}

TEST(MultiLabel, DecisionsAreAboveTheThreshold) {
  MultiLabelScores scores(1, 0.25f);
  const std::vector<int32_t> there = {0};
  scores.add(std::vector<float>{0.25f}, there);
  scores.add(std::vector<float>{0.5f}, there);
  scores.add(std::vector<float>{0.75f}, {});
  const LabelScores found = scores.result().classes[0];
  EXPECT_DOUBLE_EQ(found.precision, 0.5);
  EXPECT_DOUBLE_EQ(found.recall, 0.5);
  EXPECT_DOUBLE_EQ(found.f1, 0.5);
}

}  // namespace
}  // namespace vitrail
