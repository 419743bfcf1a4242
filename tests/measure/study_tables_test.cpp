// A study as tables, sentences, JSON and CSV: what each cell says, worked out by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "measure/study/study.h"
#include "measure/study/study_report.h"
#include "stored_text.h"
#include "study_made.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {
namespace {

StudyConfig table_config() {
  StudyConfig config;
  config.models = {"vit"}, config.ranks = {"1", "2"}, config.batches = {"16"}, config.images = 1600;
  config.repeat = 2, config.messages = {"1", "3"};
  return config;
}

nlohmann::ordered_json table_header() {
  return {{"vitrail", "1.2.3"},
          {"machine", {{"processor", "Z80"}, {"cores", 8}}},
          {"config", {{"ranks", {"1", "2"}}, {"rate", ""}, {"weak", false}}}};
}

// One rank takes 1 s for 16 images; two take 0.625 s, a fifth of it exposed.
std::vector<CaseResult> table_results() {
  std::vector<CaseResult> all = {
      made_result(made_case(1, 16), 1), made_result(made_case(2, 8, 1), 0.6, 0.125),
      made_result(made_case(2, 8, 2), 0.65, 0.125), made_message(2, 1, 0.003), made_message(2, 3, 0.007)};
  for (CaseResult& r : all) r.time = 86400 + 3661;
  for (size_t i : {1, 2})
    for (RankTime& rank : all[i].ranks)
      rank.hidden_s = 0.0625, rank.data_wait_s = 0.025, rank.compute_s -= 0.025;
  all[1].memory_bytes = all[2].memory_bytes = 3 << 20;
  all[1].loss = 2;
  all[0].gpus = {{3, "A, \"B\"", 0.5, 60, 1 << 20, 3 << 20, 70}};
  return all;
}

std::vector<std::string> titles_of(const StudyTable& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

TEST(StudyTables, ARowTellsWhereAnUpdateGoes) {
  const Study study(table_config(), table_header(), 1, table_results());
  ASSERT_EQ(study.curves.size(), 1u);
  const StudyTable table = curve_table(study.curves[0]);
  EXPECT_EQ(titles_of(table),
            (std::vector<std::string>{"ranks", "batch", "update", "spread", "images/s", "compute", "exposed",
                                      "of it imbalance", "hidden", "data", "epoch", "speed-up", "efficiency",
                                      "memory", "deg C"}));
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"1", "16", "1.00 s", "", "16.0", "100.0 %", "0.0 %", "0.0 %", "0.0 %",
                                      "0.0 %", "1 min 40 s", "1.00", "100.0 %", "", "60"}));
  EXPECT_EQ(table.rows[1],
            (std::vector<std::string>{"2 *", "16", "625 ms", "8.0 %", "25.6", "76.0 %", "20.0 %", "10.0 %",
                                      "10.0 %", "4.0 %", "1 min 03 s", "1.60", "80.0 %", "3.00 MiB", ""}));
  EXPECT_EQ(star_text(study), "* more threads than cores: such ranks take turns");
  const Study roomy(table_config(), table_header(), 2, table_results());
  EXPECT_EQ(star_text(roomy), "");
  std::vector<CaseResult> warm = table_results();
  warm[0].gpus[0].temperature = 71.6, warm[0].epochs = {{1, 10, 1, 1, 0.876}};
  const Study trained(table_config(), table_header(), 2, warm);
  const StudyTable wider = curve_table(trained.curves[0]);
  EXPECT_EQ(titles_of(wider).back(), "deg C");
  EXPECT_EQ(wider.rows[0].back(), "72");
  EXPECT_EQ(wider.rows[0][wider.rows[0].size() - 2], "87.6 %");
  EXPECT_EQ(wider.rows[1].back(), "");
}

TEST(StudyTables, LawsAreSentences) {
  const StudyPoint one{.which = made_case(1, 8)};
  Curve curve;
  const auto with = [&](size_t rows, std::optional<ShareFit> amdahl, std::optional<ShareFit> gustafson) {
    curve.rows.assign(rows, {.point = &one});
    curve.amdahl = amdahl, curve.gustafson = gustafson;
    return fit_text(curve);
  };
  EXPECT_EQ(with(3, ShareFit{0.05, 0.01}, {}),
            "Amdahl: 5.00 % of the work is serial, at most 20.0 times as fast on any number of ranks (off by "
            "1.00 % of the time on one rank)");
  EXPECT_EQ(
      with(2, ShareFit{0, 0}, {}),
      "Amdahl: 0.00 % of the work is serial, no limit is seen (off by 0.00 % of the time on one rank; any "
      "law fits two points)");
  EXPECT_EQ(with(3, ShareFit{1.01, 0}, {}), "Amdahl's law does not apply: more ranks take longer than one");
  EXPECT_NE(with(3, ShareFit{1, 0}, {}).find("at most 1.0 times"), std::string::npos);
  EXPECT_EQ(with(3, {}, ShareFit{0.125, 0.5}),
            "Gustafson: 12.50 % of the work is not shared out (off by 0.500 in speed-up)");
  EXPECT_EQ(with(3, {}, ShareFit{1.95, 0}), "Gustafson's law does not apply: more ranks do less than one");
  EXPECT_EQ(with(1, ShareFit{0.05, 0.01}, {}), "");
  EXPECT_EQ(with(3, {}, {}), "");
}

TEST(StudyTables, TheTextHasEverything) {
  std::vector<CaseResult> results = table_results();
  for (int64_t i : {1, 2}) results.push_back({.which = made_case(2, 16, i), .error = "no luck"});
  const Study study(table_config(), table_header(), 1, results);
  const std::string text = to_text(study);
  EXPECT_TRUE(text.starts_with("strong, fixed batch 16, threads, vit on cpu\n")) << text;
  for (const char* part :
       {"\n  Amdahl: 25.00 % of the work is serial",
        "\nTime of a message by its size, alpha + beta x bytes\n", "\n* more threads than cores",
        "\nvit.cpu.threads.r2.b16 failed 2 times: no luck\n",
        "\nRecommended: 16 images an update by 2 ranks (threads)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  const StudyTable messages = message_table(study);
  EXPECT_EQ(messages.rows,
            (std::vector<std::vector<std::string>>{{"threads", "2", "1.00 ms", "500 MB/s", "0.0 %"}}));
  EXPECT_EQ(study.failed(), 2u);
  EXPECT_EQ(thrown_by([&] { require_no_failure(study); }),
            "check: 2 of 7 cases failed | the same command with --retry runs them again");
  const Study fine(table_config(), table_header(), 1, table_results());
  EXPECT_EQ(thrown_by([&] { require_no_failure(fine); }), "nothing");
  EXPECT_EQ(to_text(Study(table_config(), table_header(), 1, {})), "");
  std::vector<CaseResult> shrinking = {made_message(2, 1, 0.2), made_message(2, 3, 0.1)};
  EXPECT_EQ(message_table(Study(table_config(), table_header(), 1, shrinking)).rows[0][3], "not seen");
}

TEST(StudyTables, ACsvRowHasEachColumn) {
  std::vector<CaseResult> results = table_results();
  results[1].epochs = {{2, 60, 1.5, 1.25, 0.5, 90}};
  results.resize(2);
  results.push_back({.which = made_case(2, 8, 3), .error = "no luck"});
  const std::string csv = to_csv(Study(table_config(), table_header(), 1, results, made_prediction()));
  // 100 updates of an epoch for one rank; of the second run 60 s / 0.6 s = 100, too, of which it counted 90.
  EXPECT_EQ(
      csv.substr(csv.find('\n') + 1),
      "1970-01-02 01:01:01,0,1,100,3,\"A, \"\"B\"\"\",0.5,2,1,3,60,vit,cpu,alone,1,16,16,1,1,100,1,16,1,0,"
      "0,0,0,,,,75,0.75,-25\n"
      "1970-01-02 01:01:01,0,2,45,,,,,,,,vit,cpu,threads,2,16,8,1,1,60,0.6,26.6666667,0.45,0.125,0.0625,"
      "0.025,0.0625,3145728,1.5,0.5,45,0.5,-16.6666667\n"
      "1970-01-02 01:01:01,1,2,45,,,,,,,,vit,cpu,threads,2,16,8,1,1,60,0.6,26.6666667,0.45,0.125,0.0625,"
      "0.025,0.0625,3145728,1.5,0.5,45,0.5,-16.6666667\n");
  EXPECT_TRUE(
      csv.substr(0, csv.find('\n'))
          .ends_with("GPU_Temp_C,model,device,transport,ranks,batch,batch_a_rank,fraction,repetition,epoch_s,"
                     "update_s,images_per_s,compute_s,exposed_s,hidden_s,data_wait_s,imbalance_s,"
                     "memory_bytes,train_loss,top1,predicted_epoch_s,predicted_update_s,"
                     "predicted_error_percent"));
  const std::string none = to_csv(Study(table_config(), table_header(), 1, results));
  EXPECT_NE(none.find(",1.5,0.5,,,\n"), std::string::npos) << none;
}

// Ranks take the GPUs of their host in turn.
TEST(StudyTables, RanksHaveTheirGpusInACsv) {
  CaseResult r = made_result(made_case(3, 8), 1);
  r.gpus = {{.id = 4, .name = "a"}, {.id = 7, .name = "b"}};
  const std::string csv = to_csv(Study(table_config(), table_header(), 1, {r}));
  for (const char* part : {",0,1,", ",4,a,,,,,,vit", ",7,b,,,,,,vit"})
    EXPECT_NE(csv.find(part), std::string::npos) << part;
  EXPECT_NE(csv.rfind(",2,1,"), std::string::npos);
  EXPECT_GT(csv.rfind(",4,a,"), csv.find(",7,b,"));
}

TEST(StudyTables, JsonTellsPointsAndCurves) {
  std::vector<CaseResult> results = table_results();
  results[1].sent_bytes = results[2].sent_bytes = 77;
  results[1].epochs = {{2, 60, 1.5, 1.25, 0.5}};
  const Study study(table_config(), table_header(), 1, results);
  const nlohmann::ordered_json json = to_json(study);
  EXPECT_EQ(json["vitrail"], "1.2.3");
  EXPECT_EQ(json["recommended"]["batch"], 16);
  EXPECT_EQ(json["recommended"]["ranks"], 2);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["order"].size(), 2u * (2 + 2));
  auto row = json["curves"][0]["rows"][1];
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, double>>{
           {"epoch_s", 60}, {"epoch_low_s", 60}, {"epoch_high_s", 60}, {"exposed_share", 0.2}})
    EXPECT_NEAR(row[key].get<double>(), value, 1e-9) << key;
  EXPECT_NEAR(row["speedup"].get<double>(), 100.0 / 60, 1e-9);
  EXPECT_NEAR(row["efficiency"].get<double>(), 50.0 / 60, 1e-9);
  EXPECT_EQ(row["oversubscribed"], true);
  EXPECT_EQ(json["curves"][0]["scaling"], "strong, fixed batch");
  EXPECT_TRUE(json["curves"][0]["gustafson"].is_null());
  const auto& fit = json["curves"][0]["amdahl"];
  EXPECT_NEAR(fit["serial_share"].get<double>(), 0.2, 1e-9);  // (0.6 - 1/2) / (1/2)
  EXPECT_NEAR(fit["most_speedup"].get<double>(), 5, 1e-9);
  const auto& p = json["points"][1];
  EXPECT_EQ(p["batch"], 16);
  EXPECT_EQ(p["batch_a_rank"], 8);
  EXPECT_NEAR(p["update_s"]["median"].get<double>(), 0.625, 1e-12);
  EXPECT_EQ(p["update_s"]["min"], 0.6);
  EXPECT_EQ(p["update_s"]["max"], 0.65);
  EXPECT_EQ(p["update_s"]["count"], 2);
  EXPECT_NEAR(p["images_per_s"]["median"].get<double>(), 25.6, 1e-9);
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, double>>{{"compute_s", 0.475},
                                                             {"exposed_s", 0.125},
                                                             {"hidden_s", 0.0625},
                                                             {"data_wait_s", 0.025},
                                                             {"imbalance_s", 0.0625},
                                                             {"sent_bytes", 77},
                                                             {"memory_bytes", 3 << 20}})
    EXPECT_NEAR(p[key].get<double>(), value, 1e-12) << key;
  EXPECT_EQ(p["rank_loads"].size(), 2u);
  EXPECT_TRUE(p["temperature"].is_null() && json["points"][0]["sent_bytes"].is_null());
  EXPECT_EQ(json["points"][0]["temperature"], 60);
  EXPECT_EQ(p["epoch_s"]["median"], 60);
  EXPECT_EQ(p["top1"]["max"], 0.5);
  EXPECT_EQ(p["epochs"],
            nlohmann::ordered_json::parse(
                R"([{"epoch": 2, "seconds": 60.0, "train_loss": 1.5, "eval_loss": 1.25, "top1": 0.5}])"));
  EXPECT_EQ(json["points"][2]["megabytes"], 1);
  EXPECT_EQ(json["points"][2]["seconds"]["median"], 0.003);
  EXPECT_FALSE(json["points"][2].contains("model"));
  const auto& sums = json["all_reduce"][0];
  EXPECT_EQ(sums["sizes"][1]["megabytes"], 3);
  EXPECT_EQ(sums["sizes"][1]["seconds"], 0.007);
  EXPECT_NEAR(sums["fit"]["alpha_s"].get<double>(), 0.001, 1e-9);
  EXPECT_NEAR(sums["fit"]["bytes_per_s"].get<double>(), 5e8, 1);
}

TEST(StudyReport, APageNamesWhatFailedAndWhatWasAsked) {
  const TempFolder temp;
  std::vector<CaseResult> results = table_results();
  results.push_back({.which = made_case(2, 16), .error = "no <luck>"});
  write_study(Study(table_config(), table_header(), 1, results), temp.path().string());
  const std::string page = read_file((temp.path() / "report.html").string(), 1 << 22);
  for (const char* part : {"Z80", "vit.cpu.threads.r2.b16", "no &lt;luck&gt;", "Vitrail 1.2.3", "1, 2",
                           "false", "Recommended: 16 images", "strong, fixed batch 16, threads, vit on cpu"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find(">rate<"), std::string::npos) << "what is empty is not listed";
  EXPECT_NE(read_file((temp.path() / "study.txt").string(), 1 << 20).find("25.6"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(read_file((temp.path() / "study.json").string(), 1 << 20))["failed"], 1);
}

TEST(StudyReport, EveryFileIsTheStoredOne) {
  const TempFolder temp;
  StudyConfig config = table_config();
  config.weak = true;
  std::vector<CaseResult> results = table_results();
  results.push_back(made_result(made_case(2, 16), 1.25, 0.25));
  write_study(Study(config, table_header(), 4, results, made_prediction()), temp.path().string());
  const auto text = [&](const char* name) { return read_file((temp.path() / name).string(), 1 << 22); };
  expect_stored("golden/told/study.txt", text("study.txt") + text("study.csv") + text("study.json") + "\n" +
                                             body_of(text("report.html")));
}

}  // namespace
}  // namespace vitrail
