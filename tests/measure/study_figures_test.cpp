// The figures of a study: which there are, and the numbers they draw, as the text under the pointer tells
// them.
#include "measure/study/study_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "study_made.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

StudyConfig figure_config() {
  StudyConfig config;
  config.models = {"vit"}, config.ranks = {"2", "1"}, config.batches = {"16"}, config.images = 1600;
  config.weak = true;
  return config;
}

std::vector<CaseResult> figure_results() {
  return {made_result(made_case(1, 16), 1), made_result(made_case(2, 8), 0.625, 0.125),
          made_result(made_case(2, 16), 1.25, 0.25), made_message(2, 1, 0.003), made_message(2, 3, 0.007)};
}

const Figure* figure_named(const std::vector<StudyFigure>& figures, const std::string& name) {
  for (const StudyFigure& one : figures)
    if (one.name == name) return &one.figure;
  return nullptr;
}

void expect_drawn(const std::vector<StudyFigure>& figures, const std::string& name,
                  const std::vector<std::string>& parts) {
  const Figure* figure = figure_named(figures, name);
  ASSERT_TRUE(figure) << name;
  for (const std::string& part : parts)
    EXPECT_NE(figure->body.find(part), std::string::npos) << name << ": " << part << "\n" << figure->body;
}

TEST(StudyFigures, DrawTheNumbersOfTheTables) {
  const Study study(figure_config(), {}, 8, figure_results());
  const std::vector<StudyFigure> figures = figures_of(study);
  // 100 updates of 16 images, or half of them for a share of one rank.
  expect_drawn(figures, "strong", {"threads, batch 16: 100 at 1<", "threads, batch 16: 62.5 at 2<"});
  expect_drawn(figures, "weak",
               {"threads, batch 16 a rank: 50 at 1<", "threads, batch 16 a rank: 62.5 at 2<"});
  expect_drawn(figures, "speedup", {"threads, batch 16: 1.6 at 2<", "data-name=\"ideal\""});
  expect_drawn(figures, "weak-speedup", {": 1.6 at 2<"});
  expect_drawn(figures, "speed-batch",
               {"1 rank: 16 at 16<", "2 ranks, threads: 25.6 at 16<", ": 25.6 at 32<"});
  // A fifth is exposed, half of that a wait for the slowest.
  expect_drawn(
      figures, "sync-share",
      {"2 x 8 threads: compute 80 %", "2 x 8 threads: exposed communication 10 %",
       "2 x 8 threads: wait for the slowest 10 %", "1 x 16: compute 100 %", "1 x 16: wait for data 0 %"});
  expect_drawn(figures, "rank-load", {"0: 2 x 8 threads 80 %", "1: 2 x 16 threads 80 %"});
  expect_drawn(
      figures, "all-reduce",
      {"threads, 2 ranks: 3 at 1<", "threads, 2 ranks: 7 at 3<", "data-name=\"fit: threads, 2 ranks\""});
  for (const char* absent : {"transports", "devices", "loss-epoch", "accuracy-epoch", "accuracy-batch"})
    EXPECT_FALSE(figure_named(figures, absent)) << absent;
  EXPECT_EQ(figure_named(figures, "strong")->title, "Strong scaling");
  EXPECT_EQ(figure_named(figures, "strong")->note, "seconds of an epoch");
  EXPECT_EQ(figure_named(figures, "weak")->title, "Weak scaling");
  EXPECT_EQ(figure_named(figures, "speedup")->legend.back().name, "ideal");
}

TEST(StudyFigures, ErrorsOfASpeedUpAreThoseOfItsTime) {
  std::vector<CaseResult> results = figure_results();
  results.push_back(made_result(made_case(2, 8, 2), 0.375, 0.125));
  const Study study(figure_config(), {}, 8, results);
  const std::vector<StudyFigure> figures = figures_of(study);
  // 0.375 to 0.625 s are medians of 0.5 s: twice as fast, 1.6 to 2.67 times.
  expect_drawn(figures, "speedup", {": 2 at 2<"});
  const Figure& drawn = *figure_named(figures, "speedup");
  const Figure& times = *figure_named(figures, "strong");
  EXPECT_NE(drawn.body.find("class=\"bar err"), std::string::npos);
  EXPECT_NE(times.body.find("class=\"bar err"), std::string::npos);
  expect_drawn(figures, "strong", {": 50 at 2<"});
}

TEST(StudyFigures, TrainingHasItsEpochs) {
  std::vector<CaseResult> results = figure_results();
  for (CaseResult& r : results) r.epochs = {{0, 10, 2, 1, 0.25}, {1, 10, 1.5, 1, 0.5}};
  const Study study(figure_config(), {}, 8, results);
  const std::vector<StudyFigure> figures = figures_of(study);
  expect_drawn(figures, "loss-epoch", {"1 x 16: 2 at 1<", "2 x 8 threads: 1.5 at 2<"});
  expect_drawn(figures, "accuracy-epoch", {"1 x 16: 25 at 1<", "2 x 16 threads: 50 at 2<"});
  expect_drawn(figures, "accuracy-batch", {"1 rank: 50 at 16<", "2 ranks, threads: 50 at 32<"});
}

TEST(StudyFigures, TransportsAndDevicesStandSideBySide) {
  StudyConfig config = figure_config();
  config.transports = {"threads", "mpi"}, config.device = {"cpu", "cuda:0"}, config.weak = false;
  std::vector<CaseResult> results = figure_results();
  CaseResult mpi = made_result(made_case(2, 8), 0.5), gpu = made_result(made_case(1, 16), 0.1);
  mpi.which.transport = "mpi", gpu.which.device = "cuda:0";
  results.insert(results.end(), {mpi, gpu});
  const Study study(config, {}, 8, results);
  const std::vector<StudyFigure> figures = figures_of(study);
  expect_drawn(
      figures, "transports-vit-cpu",
      {"1: threads 16 images a second", "2: threads 25.6 images a second", "2: mpi 32 images a second"});
  expect_drawn(figures, "devices",
               {"vit, 1 x 16: cpu 1000 ms an update", "vit, 1 x 16: cuda:0 100 ms an update",
                "vit, 2 x 8 mpi: cpu 500 ms an update"});
  EXPECT_EQ(figure_named(figures, "strong-vit-cpu")->title, "Strong scaling: vit, cpu");
}

std::vector<std::string> legend_of(const Figure& figure) {
  std::vector<std::string> names;
  for (const auto& one : figure.legend) names.push_back(one.name);
  return names;
}

// Bars are of the side's model and device, the largest batch, and the first scaling alone.
TEST(StudyFigures, ATransportHasOneBarForSoManyRanks) {
  StudyConfig config = figure_config();
  config.models = {"vit", "deit"}, config.transports = {"threads", "mpi"}, config.device = {"cpu", "cuda:0"};
  config.batches = {"16", "32"}, config.weak = true;
  std::vector<CaseResult> results;
  double seconds = 1;
  for (const char* model : {"vit", "deit"})
    for (const char* device : {"cpu", "cuda:0"})
      for (const char* transport : {"threads", "mpi"})
        for (const int64_t ranks : {1, 2})
          for (const int64_t batch : {8, 16, 32}) {
            if (ranks == 1 && transport == std::string("mpi")) continue;
            CaseResult one = made_result(made_case(ranks, batch), seconds);
            one.which.model = model, one.which.device = device;
            if (ranks > 1) one.which.transport = transport;
            results.push_back(one);
            seconds *= 2;
          }
  const Study study(config, {}, 8, results);
  const std::vector<StudyFigure> figures = figures_of(study);
  for (const char* name :
       {"transports-vit-cpu", "transports-deit-cpu", "transports-vit-cuda-0", "transports-deit-cuda-0"}) {
    const Figure* figure = figure_named(figures, name);
    ASSERT_TRUE(figure) << name;
    EXPECT_EQ(legend_of(*figure), (std::vector<std::string>{"threads", "mpi"})) << name;
  }
  // 32 images on one rank, and on two with 16 each: the third and the fifth of the threads, the eighth case.
  expect_drawn(
      figures, "transports-vit-cpu",
      {"1: threads 8 images a second", "2: threads 2 images a second", "2: mpi 0.25 images a second"});
}

// Batches that double stand equally far apart.
TEST(StudyFigures, BatchesStandByTheirRatio) {
  std::vector<CaseResult> results;
  for (const int64_t batch : {8, 16, 32, 64}) results.push_back(made_result(made_case(1, batch), 1));
  for (CaseResult& r : results) r.epochs = {{0, 10, 2, 1, 0.25}, {1, 10, 1.5, 1, 0.5}};
  StudyConfig config = figure_config();
  config.ranks = {"1"}, config.batches = {"8", "16", "32", "64"};
  const Study study(config, {}, 8, results);
  const std::vector<StudyFigure> figures = figures_of(study);
  for (const char* name : {"speed-batch", "accuracy-batch"}) {
    const Figure* figure = figure_named(figures, name);
    ASSERT_TRUE(figure) << name;
    const std::string key = "data-values=\"";
    const size_t at = figure->body.find(key) + key.size();
    std::istringstream values(figure->body.substr(at, figure->body.find('"', at) - at));
    std::vector<double> pixels, batches;
    for (std::string point; std::getline(values, point, ';');) {
      pixels.push_back(std::stod(point));
      batches.push_back(std::stod(point.substr(point.find(',') + 1)));
    }
    EXPECT_EQ(batches, (std::vector<double>{8, 16, 32, 64})) << name;
    ASSERT_EQ(pixels.size(), 4u) << name;
    for (size_t i = 2; i < 4; ++i)
      EXPECT_NEAR(pixels[i] - pixels[i - 1], pixels[1] - pixels[0], 0.2) << name << ", in tenths of a pixel";
  }
}

TEST(StudyFigures, AtMostEightLinesOfEpochs) {
  std::vector<CaseResult> results;
  for (int64_t batch = 1; batch <= 10; ++batch) {
    results.push_back(made_result(made_case(2, batch), 1));
    results.back().epochs = {{0, 10, 2, 1, 0.25}, {1, 10, 1.5, 1, 0.5}};
  }
  const Study study(figure_config(), {}, 8, results);
  const std::vector<StudyFigure> figures = figures_of(study);
  EXPECT_EQ(figure_named(figures, "loss-epoch")->legend.size(), 8u);
  EXPECT_EQ(figure_named(figures, "rank-load")->legend.size(), 8u);
}

// What was predicted is drawn as the time of the same work, 100 updates, and as its speed-up against the
// predicted one of one rank: dashed, in the colour of its curve, under a name of its own.
TEST(StudyFigures, PredictedPointsStandBesideTheirCurve) {
  const TempFolder temp;
  const std::string path = temp.file("p.json", R"([
    {"model": "vit", "ranks": 1, "batch": 16, "transport": "mpi", "update_s": 0.9},
    {"model": "vit", "ranks": 1, "batch": 16, "update_s": 0.8},
    {"model": "vit", "ranks": 2, "batch": 8, "transport": "mpi", "update_s": 0.1},
    {"model": "other", "ranks": 2, "batch": 8, "update_s": 0.2},
    {"model": "vit", "ranks": 2, "batch": 8, "update_s": 0.5},
    {"model": "vit", "ranks": 2, "batch": 16, "update_s": 1}])");
  const Study study(figure_config(), {}, 8, figure_results(), {"p.json", read_predicted(path)});
  ASSERT_EQ(study.prediction.points.size(), 6u);
  const std::vector<StudyFigure> figures = figures_of(study);
  const auto drawn = [&](const char* name, const char* line) {
    const Figure* figure = figure_named(figures, name);
    const size_t at = figure->body.find(std::string("data-name=\"predicted: ") + line + "\"");
    if (at == std::string::npos) return std::string("nothing");
    EXPECT_NE(figure->body.rfind("line c0 dashed", at), std::string::npos) << figure->body;
    return figure->body.substr(at, figure->body.find("/>", at) - at);
  };
  const auto shows = [](const std::string& values, const char* one, const char* two) {
    return values.find(one) != std::string::npos && values.ends_with(std::string(two) + "\"");
  };
  // One point of one rank: the first; over other transports than the curve's there is none.
  EXPECT_TRUE(shows(drawn("strong", "threads, batch 16"), ",1,90;", ",2,50"))
      << drawn("strong", "threads, batch 16");
  EXPECT_TRUE(shows(drawn("speedup", "threads, batch 16"), ",1,1;", ",2,1.8"));
  EXPECT_TRUE(shows(drawn("weak", "threads, batch 16 a rank"), ",1,45;", ",2,50"));
  EXPECT_TRUE(shows(drawn("weak-speedup", "threads, batch 16 a rank"), ",1,1;", ",2,1.8"));
  EXPECT_EQ(legend_of(*figure_named(figures, "speedup")),
            (std::vector<std::string>{"threads, batch 16", "predicted: threads, batch 16", "ideal"}));
  const auto json = to_json(study)["predicted"][4];
  EXPECT_EQ(json, nlohmann::ordered_json::parse(R"({"model": "vit", "device": "cpu", "transport": "threads",
                                                    "ranks": 2, "batch": 8, "update_s": 0.5})"));
}

// Without the smallest number of ranks there is nothing that a predicted speed-up could be against.
TEST(StudyFigures, APredictedSpeedUpNeedsTheSmallestNumberOfRanks) {
  const Study study(figure_config(), {}, 8, figure_results(), {"p", {{"vit", "cpu", "threads", 2, 8, 0.5}}});
  const std::vector<StudyFigure> figures = figures_of(study);
  expect_drawn(figures, "strong", {"data-name=\"predicted: threads, batch 16\""});
  EXPECT_EQ(figure_named(figures, "speedup")->body.find("predicted"), std::string::npos);
  EXPECT_EQ(figure_named(figures, "weak")->body.find("predicted"), std::string::npos);
}

}  // namespace
}  // namespace vitrail
