#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/rng.h"
#include "data/decode.h"
#include "stored_text.h"
#include "telemetry/confusion_map.h"
#include "telemetry/html.h"
#include "telemetry/page_fault.h"
#include "telemetry/report.h"

namespace vitrail {
namespace {

TEST(PageFault, SeesFaults) {
  EXPECT_EQ(page_fault("<p>a<br>b</p><img src=\"x\"><path d=\"M\"/>"), "");
  for (const char* broken : {"<p><b></p></b>", "<p>", "<p class=\"x>a</p>", "<p", "<a <b>></a>"})
    EXPECT_NE(page_fault(broken), "") << broken;
}

std::vector<uint8_t> sample_png(uint64_t key, int64_t side) {
  Image image = Image::blank(side, side, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(counter_hash(key, i / 12) & 255);
  return encode_png(image);
}

ConfusionMatrix sample_matrix(int64_t classes) {
  ConfusionMatrix matrix(classes);
  for (int64_t i = 0; i < classes * 100; ++i) {
    const uint64_t draw = counter_hash(3, static_cast<uint64_t>(i));
    const int64_t label = i % classes;
    const int64_t other = (label + 1 + static_cast<int64_t>(draw % 7 % 3)) % classes;
    matrix.add(label, draw % 100 < 80 + static_cast<uint64_t>(label) % 15 ? label : other, draw % 50 > 0);
  }
  return matrix;
}

std::vector<LineChart> sample_curves() {
  Series raw{"train", {}, true}, eval{"eval", {}}, top1{"top-1", {}}, top5{"top-5", {}}, lr{"lr", {}};
  for (int step = 1; step <= 2000; ++step) {
    const double x = step, decay = std::exp(-x / 600);
    raw.points.push_back(
        {x, 0.4 + 1.9 * decay + 0.15 * double{counter_uniform(1, static_cast<uint64_t>(step))}});
    lr.points.push_back({x, step < 100 ? 1e-3 * x / 100 : 5e-4 * (1 + std::cos(x / 2000 * 3.14159))});
    if (step % 200 != 0) continue;
    eval.points.push_back({x, 0.45 + 1.8 * decay});
    top1.points.push_back({x, 88 - 60 * decay});
    top5.points.push_back({x, 99 - 30 * decay});
  }
  Series calm{"train", smooth(raw.points, 40)};
  Series norm{"norm", raw.points};
  for (Point& p : norm.points) p.y = std::exp(2 * p.y);
  return {{"Loss", "step", "", {raw, calm, eval}},
          {"Accuracy", "step", "% of the evaluation set", {top1, top5}},
          {"Learning rate", "step", "", {lr}},
          {"Gradient norm", "step", "", {norm}, true}};
}

Report sample_report() {
  Report report;
  report.title = "demo <fashion> & friends";
  report.verdict = "86.2 % top-1 on 10,000 images after 2,000 steps";
  report.figures = {{"top-1", "86.20 %"}, {"top-5", "99.10 %"}, {"loss", "0.412"}, {"images/s", "1,204"}};
  report.curves = sample_curves();
  report.classes = {"T-shirt", "Trouser", "Pullover", "Dress",     "<script>alert(1)</script>",
                    "Sandal",  "Shirt",   "Sneaker",  "Bag \"x\"", "Ankle boot with a very long name"};
  report.confusion = sample_matrix(10);
  report.best = {{sample_png(1, 28), "a.png", "Bag", "Bag", 0.9991}};
  report.worst = {{sample_png(2, 28), "b\"><img src=x>.png", "Shirt", "T-shirt", 0.98},
                  {sample_png(3, 200), "c.png", "Coat", "Pullover", 0.91}};
  report.memory = {{"parameters", 22'000'000, 22'000'000}, {"saved activations", 180'000'000, 180'004'096}};
  report.machine = {{"processor", "two cores"}, {"memory", "24 GiB"}};
  report.events = {{"resume", "from checkpoint step-500", 500, 1.7e9},
                   {"skipped_update", "NaN", 812, kUnknown}};
  report.config = "{\n  \"model\": {\"name\": \"</pre><script>\"}\n}";
  report.generator = "Vitrail";
  return report;
}

// REPORT_FILE keeps the page for inspection.
TEST(Report, SampleIsWellFormedAndComplete) {
  const std::string html = render_report(sample_report());
  if (const char* file = std::getenv("REPORT_FILE")) std::ofstream(file) << html;
  EXPECT_EQ(page_fault(html), "");
  for (const char* id : {"curves", "confusion", "classes", "images", "memory", "events", "machine", "config"})
    EXPECT_NE(html.find(std::string("<section id=\"") + id + "\">"), std::string::npos) << id;
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_NE(html.find("2023-11-14 22:13:20 UTC"), std::string::npos);
}

TEST(Report, EveryPartIsTheStoredOne) {
  Report report = sample_report();
  for (std::vector<ReportImage>* images : {&report.best, &report.worst})
    for (ReportImage& image : *images) image.png = {1, 2, 3};
  expect_stored("golden/told/report.txt", body_of(render_report(report)));
}

TEST(Report, NamesCannotBecomeMarkupAndNothingIsLoaded) {
  const std::string html = render_report(sample_report());
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("<img src=x"), std::string::npos);
  EXPECT_EQ(html.find("</pre><script>"), std::string::npos);
  EXPECT_NE(html.find("demo &lt;fashion&gt; &amp; friends"), std::string::npos);
  for (const char* address : {"http://", "https://", "url(", "<link", "@import"})
    EXPECT_EQ(html.find(address), std::string::npos) << address;
}

TEST(Report, SectionsWithoutContentAreLeftOut) {
  const std::string html = render_report({.title = "empty"});
  EXPECT_EQ(page_fault(html), "");
  EXPECT_EQ(html.find("<section"), std::string::npos);
}

TEST(Report, ManyClassesAreListedInsteadOfDrawn) {
  Report report;
  report.confusion = sample_matrix(kMostHeatMapClasses);
  EXPECT_NE(render_report(report).find("aria-label=\"Confusion matrix\""), std::string::npos);
  report.confusion = sample_matrix(2500);
  const std::string html = render_report(report);
  EXPECT_EQ(page_fault(html), "");
  EXPECT_EQ(html.find("aria-label=\"Confusion matrix\""), std::string::npos);
  EXPECT_NE(html.find("Most confused"), std::string::npos);
  EXPECT_NE(html.find("The worst 2000 of 2500 classes"), std::string::npos);
}

TEST(Report, SeveralLabelsAnImageHaveTheirOwnTable) {
  MultiLabelScores scores(2);
  scores.add(std::vector<float>{0.9f, 0.2f}, std::vector<int32_t>{0});
  Report report;
  report.classes = {"cat", "dog"};
  report.multi_label = scores.result();
  const std::string html = render_report(report);
  EXPECT_NE(html.find("average precision"), std::string::npos);
  EXPECT_EQ(html.find("Most confused"), std::string::npos);
}

TEST(HeatMap, ColoursRightAndWrongByTheirShare) {
  ConfusionMatrix matrix(2);
  for (int i = 0; i < 4; ++i) matrix.add(0, i < 3 ? 0 : 1, false);
  const std::string svg = to_html(heat_map(confusion_map(matrix, {"cat"})));
  EXPECT_NE(svg.find("<title>cat → class 1: 1 (25.00 %)</title><rect class=\"c1\""), std::string::npos);
  EXPECT_NE(svg.find("fill-opacity=\"0.54\""), std::string::npos);  // 0.08 + 0.92 * sqrt(0.25)
  EXPECT_EQ(std::string_view(svg).find("class 1 → "), std::string::npos);
  EXPECT_EQ(page_fault(svg), "");
}

TEST(Html, Escapes) {
  const std::pair<const char*, const char*> rows[] = {{"a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;"},
                                                      {"été\n", "été\n"},
                                                      {"\x01", "\xEF\xBF\xBD"},
                                                      {"\xFF", "&quot;\\xff&quot;"}};
  for (const auto& [text, html] : rows) EXPECT_EQ(html_escape(text), html);
}

TEST(Html, DataAddresses) {
  const std::pair<std::vector<uint8_t>, const char*> rows[] = {{{}, ""},
                                                               {{'M'}, "TQ=="},
                                                               {{'M', 'a'}, "TWE="},
                                                               {{'M', 'a', 'n'}, "TWFu"},
                                                               {{255, 254, 253, 0}, "//79AA=="}};
  for (const auto& [bytes, text] : rows)
    EXPECT_EQ(png_data_address(bytes), std::string("data:image/png;base64,") + text);
}

TEST(Report, RanksAreBarsOfTheirTime) {
  Report report;
  report.title = "ranks";
  EXPECT_EQ(render_report(report).find("id=\"ranks\""), std::string::npos);
  TimingStatus timing{.step = 10, .updates = 2, .ranks = {}, .collectives = {}, .time = 0};
  timing.ranks = {{.compute_s = 3, .exposed_s = 1, .imbalance_s = 0.5}, {.compute_s = 2, .data_wait_s = 1}};
  timing.collectives = {{"all_reduce", 4, 8e9, 2}, {"receive", 4, 0, 2}};
  report.ranks = {timing, StartStatus{.step = 0, .phases = {{"plan", {0.5, 0.25}}}, .time = 0}};
  const std::string page = render_report(report);
  EXPECT_EQ(page_fault(page), "");
  for (const char* part :
       {"id=\"ranks\"", "rank 0: communication 250 ms an update, 12.50 %", "rank 0: imbalance 250 ms",
        "rank 1: data wait 500 ms", "4.00 GB/s", "plan", "An update of 2.00 s, by rank",
        "<table class=\"sortable\">",
        ("<td class=\"n\" data-key=\"0\">0</td><td class=\"n\" data-key=\"3\">1.50 s</td>"
         "<td class=\"n\" data-key=\"1\">500 ms</td><td class=\"n\" data-key=\"0.5\">250 ms</td>"),
        ("<td>all_reduce</td><td class=\"n\">2</td><td class=\"n\">3.73 GiB</td>"
         "<td class=\"n\">500 ms</td>"),
        "<td>plan</td><td class=\"n\">250 ms</td><td class=\"n\">500 ms</td>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("0.00"), std::string::npos) << "what sends nothing has no bandwidth";
  EXPECT_EQ(page.find("rank 1: imbalance"), std::string::npos) << "what a rank does not have is not drawn";
}

}  // namespace
}  // namespace vitrail
