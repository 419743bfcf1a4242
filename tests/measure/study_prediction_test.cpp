// Predicted updates beside measured ones: in tables and JSON, and how far they are off.
#include "measure/study/study_prediction.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "measure/study/study.h"
#include "study_made.h"

namespace vitrail {
namespace {

StudyConfig predicted_config() {
  StudyConfig config;
  config.models = {"vit"}, config.ranks = {"1", "2"}, config.batches = {"16"}, config.images = 1600;
  return config;
}

std::vector<CaseResult> predicted_results() {
  return {made_result(made_case(1, 16), 1), made_result(made_case(2, 8), 0.625, 0.125)};
}

TEST(StudyPrediction, StandsBesideTheMeasured) {
  const Study study(predicted_config(), {}, 4, predicted_results(), made_prediction());
  const StudyTable table = curve_table(study.curves[0]);
  const auto cell = [&](size_t row, const char* title) {
    for (size_t i = 0; i < table.columns.size(); ++i)
      if (table.columns[i].title == title) return table.rows[row][i];
    return std::string("none");
  };
  EXPECT_EQ(cell(1, "predicted"), "500 ms");
  EXPECT_EQ(cell(1, "off"), "-20.0 %");
  EXPECT_EQ(cell(1, "predicted speed-up"), "1.50");
  EXPECT_EQ(cell(1, "predicted efficiency"), "75.0 %");
  EXPECT_EQ(fit_text(study.curves[0]),
            fit_text(Study(predicted_config(), {}, 4, predicted_results()).curves[0]))
      << "laws are of what was measured";
  const auto two = to_json(study)["curves"][0]["rows"][1];
  EXPECT_DOUBLE_EQ(two["predicted_epoch_s"].get<double>(), 50);
  EXPECT_DOUBLE_EQ(two["predicted_speedup"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(two["predicted_efficiency"].get<double>(), 0.75);
  EXPECT_NEAR(two["predicted_error_percent"].get<double>(), -20, 1e-9);
  const auto point = to_json(study)["points"][0];
  EXPECT_EQ(point["predicted_update_s"], 0.75);
  EXPECT_NEAR(point["predicted_error_percent"].get<double>(), -25, 1e-9);
}

// The worst keeps its sign, the median has none; a lone transport needs no sum.
TEST(StudyPrediction, ErrorsAreTheMedianAndTheWorst) {
  std::vector<CaseResult> results = predicted_results();
  results.push_back(made_result(made_case(2, 16), 0.5));
  const Study study(predicted_config(), {}, 4, results, made_prediction());
  EXPECT_EQ(prediction_table(study).rows,
            (std::vector<std::vector<std::string>>{
                {"vit on cpu, alone", "1", "25.0 %", "-25.0 %", "vit.cpu.alone.r1.b16"},
                {"vit on cpu, threads", "2", "60.0 %", "+100.0 %", "vit.cpu.threads.r2.b16"},
                {"all", "3", "25.0 %", "+100.0 %", "vit.cpu.threads.r2.b16"}}));
  results.erase(results.begin());
  const Study two(predicted_config(), {}, 4, results, made_prediction());
  EXPECT_EQ(prediction_table(two).rows.size(), 1u);
  EXPECT_EQ(prediction_text(two), "Predicted by plan --cluster: N, D");
  const auto json = to_json(two)["prediction"];
  EXPECT_EQ(json["by"], "plan --cluster: N, D");
  EXPECT_EQ(json["errors"].size(), 1u);
  EXPECT_NEAR(json["errors"][0]["median_percent"].get<double>(), 60, 1e-9);
  EXPECT_NEAR(json["errors"][0]["worst_percent"].get<double>(), 100, 1e-9);
  const Study none(predicted_config(), {}, 4, results);
  EXPECT_TRUE(prediction_table(none).rows.empty());
  EXPECT_EQ(prediction_text(none), "");
  EXPECT_FALSE(to_json(none).contains("prediction"));
  EXPECT_TRUE(to_json(none)["points"][0]["predicted_update_s"].is_null());
}

}  // namespace
}  // namespace vitrail
