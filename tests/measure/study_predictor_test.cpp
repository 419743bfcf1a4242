// What a study predicts before it measures: by which files, which plans are run for it, and what is left out.
#include "measure/study/study_predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/values.h"
#include "own_device.h"
#include "source_root.h"
#include "study_program.h"
#include "temp_folder.h"
#include "thrown.h"

namespace vitrail {
namespace {

const char* const kNetworks = VT_SOURCE_DIR "/configs/networks";

// Answers a plan by a law: an update of b images a rank takes b ms, and 1 ms more for each partner.
struct FakePlans {
  std::vector<std::vector<std::string>> words = {};
  int stop_after = 1 << 30, code = 0;

  StudyHooks hooks() {
    return {.run =
                [this](auto& given, auto& environment, auto&) {
                  EXPECT_TRUE(environment.empty());
                  words.push_back(given);
                  const auto number = [&](const char* name) {
                    return parse_integer(value_after(given, name)).value();
                  };
                  const int64_t ms = number("--batch") + number("--nodes") * number("--devices") - 1;
                  return StudyHooks::End{
                      code, strf(R"({"meshes": [{"update_s": %g}]})", 1e-3 * static_cast<double>(ms)),
                      "error: no such model\n  try: another\n"};
                },
            .stop = [this] { return std::ssize(words) >= stop_after; }};
  }
};

// A folder of device files, with that of this machine among them.
struct Places {
  TempFolder folder;
  std::string own = folder.file("own.json", file_text(own_file()));
  PredictionPlaces places{{kNetworks}, {folder.path()}};
};

StudyConfig study_on(const std::vector<std::string>& transports) {
  StudyConfig config;
  config.models = {"vit_tiny_patch16_224"}, config.ranks = {"1,2"}, config.batches = {"16"};
  config.transports = transports, config.weak = true;
  check_study(config);
  return config;
}

std::string points_text(const StudyPrediction& prediction) {
  std::string text;
  for (const PredictedPoint& p : prediction.points)
    text += strf("%s %lld x %lld: %g; ", p.transport.c_str(), static_cast<long long>(p.ranks),
                 static_cast<long long>(p.batch), p.update_s);
  return text;
}

TEST(StudyPredictor, PlansEveryUpdateByTheFilesOfThisMachine) {
  const Places at;
  const StudyConfig config = study_on({"threads", "mpi"});
  FakePlans plans;
  const StudyPrediction found =
      StudyPredictor(config, at.places).predict({.program = "vitrail"}, plans.hooks(), 2);
  EXPECT_EQ(points_text(found),
            "alone 1 x 16: 0.016; threads 2 x 8: 0.009; threads 2 x 16: 0.017; mpi 2 x 8: 0.009; "
            "mpi 2 x 16: 0.017; ");
  EXPECT_EQ(found.by, "plan --cluster: CPU hosts on 1 Gbit/s Ethernet, " + own_file().name);
  EXPECT_TRUE(found.notes.empty());
  ASSERT_EQ(plans.words.size(), 3u) << "threads and mpi are the same on the network of a host";
  EXPECT_EQ(
      plans.words[1],
      plan_words_of(
          {.model = "vit_tiny_patch16_224", .device = "cpu", .transport = "threads", .ranks = 2, .batch = 8},
          config, "vitrail", {kNetworks + std::string("/ethernet-1g.json"), at.own, 1}));
  // What a study then measures is not asked: another result leaves the prediction as it is.
  StudyCase two{.model = "vit_tiny_patch16_224", .device = "cpu", .transport = "mpi", .ranks = 2, .batch = 8};
  EXPECT_EQ(found.update_s(two), 0.009);
  two.device = "cuda";
  EXPECT_TRUE(std::isnan(found.update_s(two)));
}

TEST(StudyPredictor, SaysInALineWhatItLeavesOut) {
  const Places at;
  FakePlans plans;
  const auto notes = [&](const StudyConfig& config, const PredictionPlaces& places, int cores) {
    return StudyPredictor(config, places).predict({.program = "vitrail"}, plans.hooks(), cores).notes;
  };
  using Notes = std::vector<std::string>;
  const StudyConfig usual = study_on({"threads"});
  EXPECT_EQ(notes(usual, {{kNetworks}, {}}, 2),
            Notes{"not predicted, 3 of 3 updates: no device file describes " + own_file().name +
                  ": vitrail bench calibrate --out FILE, --target FILE"});
  EXPECT_EQ(notes(usual, at.places, 1), Notes{"not predicted, 2 of 3 updates: more threads than cores"});
  StudyConfig other = usual;
  other.threads = 0;
  EXPECT_EQ(notes(other, at.places, 2),
            Notes{"not predicted, 2 of 3 updates: with --threads 0 hosts choose the threads of their ranks"});
  other = usual, other.device = {"cuda"};
  EXPECT_EQ(notes(other, at.places, 2),
            Notes{"not predicted, 3 of 3 updates: no network file says how ranks on cuda are joined: "
                  "--cluster dgx-a100, or a file"});
  other = usual, other.transports = {"nodes"}, other.namespaces = 2;
  EXPECT_EQ(
      notes(other, at.places, 2),
      Notes{"not predicted, 2 of 3 updates: no network file says how nodes are joined: --cluster NAME"});
  plans.code = 65;
  EXPECT_EQ(notes(usual, at.places, 2),
            Notes{"not predicted, 3 of 3 updates: plan --cluster: exit code 65: no such model"});
}

TEST(StudyPredictor, NodesAreThoseOfTheHosts) {
  const Places at;
  StudyConfig config = study_on({"threads"});
  config.transports = {"nodes"}, config.hosts = "a:4,b:4", config.ranks = {"2", "3", "4"},
  config.weak = false;
  config.batches = {"12"}, config.cluster = "ethernet-1g";
  FakePlans plans;
  const StudyPlaces places{.program = "vitrail", .hosts = {{"a", 4}, {"b", 4}}};
  const StudyPrediction found = StudyPredictor(config, at.places).predict(places, plans.hooks(), 1);
  EXPECT_EQ(points_text(found), "nodes 2 x 6: 0.007; nodes 4 x 3: 0.006; ");
  ASSERT_EQ(plans.words.size(), 2u);
  EXPECT_EQ(value_after(plans.words[1], "--nodes") + " x " + value_after(plans.words[1], "--devices"),
            "2 x 2");
  EXPECT_EQ(found.notes, std::vector<std::string>{
                             "not predicted, 1 of 3 updates: the nodes have different numbers of ranks"});
}

// Files are refused as plan --cluster refuses them, before anything runs.
TEST(StudyPredictor, RefusesTheFilesThatAPlanRefuses) {
  const Places at;
  const auto said = [&](const std::string& cluster, const std::string& target,
                        const PredictionPlaces& places) {
    StudyConfig config = study_on({"threads"});
    config.cluster = cluster, config.target = target;
    return thrown_by([&] { const StudyPredictor predictor(config, places); });
  };
  EXPECT_EQ(said("nonet", "own", at.places),
            "data: no network \"nonet\" | a file, or the name of one in configs/networks, as dgx-a100");
  EXPECT_TRUE(said("", "owl", at.places).starts_with("data: no device \"owl\" | did you mean --target own?"));
  EXPECT_TRUE(
      said(at.own, "own", at.places)
          .starts_with("data: " + at.own + " is no network file: its format is not 'vitrail network 1'"));
  EXPECT_TRUE(said("dgx-a100", kNetworks + std::string("/dgx-a100.json"), at.places)
                  .find("is no device file: its format is \"vitrail network 1\"") != std::string::npos);
  EXPECT_EQ(
      said("dgx-a100", "", {{kNetworks}, {}}),
      "config: --cluster needs the speed of its devices | --target h200, or a file that bench calibrate "
      "wrote");
  DeviceFile other = own_file();
  other.name = "Another Processor 9000";
  at.folder.file("other.json", file_text(other));
  EXPECT_NE(said("", "other", at.places).find("other.json does not describe this machine"),
            std::string::npos);
  EXPECT_EQ(said("ethernet-1g", "own", at.places), "nothing");
}

// A network that is named is meant: where its plan is refused, nothing is measured.
TEST(StudyPredictor, ARefusedPlanOnANamedNetworkEndsTheStudy) {
  const Places at;
  StudyConfig config = study_on({"threads"});
  config.cluster = "ethernet-1g";
  FakePlans plans{.code = 64}, stopped{.stop_after = 2};
  const auto said = [&](FakePlans& fake) {
    return thrown_by(
        [&] { StudyPredictor(config, at.places).predict({.program = "vitrail"}, fake.hooks(), 2); });
  };
  EXPECT_EQ(said(plans),
            "config: " + list_cases(config).front().point() +
                ": plan --cluster: exit code 64: no such model | vitrail plan --cluster with the same "
                "options says more");
  EXPECT_EQ(said(stopped),
            "stopped: stopped while updates were predicted | the same command goes on where it was");
  EXPECT_EQ(stopped.words.size(), 2u);
}

TEST(StudyPredictor, PointsOfAFileNeedNoPlan) {
  const TempFolder folder;
  StudyConfig config = study_on({"threads"});
  config.predicted = folder.file("p.json", R"([{"model": "m", "ranks": 2, "batch": 16, "update_s": 0.1}])");
  FakePlans plans;
  const StudyPrediction found =
      StudyPredictor(config, {{}, {}}).predict({.program = "vitrail"}, plans.hooks(), 2);
  EXPECT_EQ(points_text(found), "threads 2 x 16: 0.1; ");
  EXPECT_EQ(found.by, config.predicted);
  EXPECT_TRUE(plans.words.empty() && found.notes.empty());
  config.predicted = folder.file("bad.json", "{}");
  EXPECT_TRUE(thrown_by([&] { const StudyPredictor predictor(config, {}); }).starts_with("data: "));
}

}  // namespace
}  // namespace vitrail
