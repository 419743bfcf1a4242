// A run that is resumed goes on with the models it was started with: its teacher, and what the files of
// model.init say. Others are refused before anything is written.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/checkpoint/manifest.h"
#include "io/model_files.h"
#include "train/helpers/tiny_run.h"
#include "train/same_run.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// Writes a model anew with another card.
void write_changed(const std::string& from, const std::string& to,
                   const std::function<void(ModelCard&)>& change) {
  const auto model = open_model(from);
  ModelCard card = model->card();
  change(card);
  write_model(to, card, {.manifest = true},
              [&](const ParamSpec& spec, std::span<float> target) { model->read_param(spec, target); });
}

// A run that begins with init/ and learns from teacher/, which others/ may replace.
class SameRun : public ::testing::Test {
 protected:
  SameRun() {
    TrainConfig other = tiny_config(2);
    train(other, work_ / "one");
    other.train.seed = 1;
    train(other, work_ / "two");
    config_.distill = {DistillKind::kSoft, work_ / "teacher", 0.5, 2};
    config_.model.init = work_ / "init";
    put("one/best", "teacher");
    put("one/best", "init");
    train(config_, work_ / "run");
    config_.train.steps = 4;
  }

  void put(const std::string& from, const std::string& to) {
    fs::remove_all(work_ / to);
    fs::copy(work_ / from, work_ / to, fs::copy_options::recursive);
  }

  Error refusal() {
    const std::string before = read_file(work_ / "run/metrics.jsonl", 1 << 20);
    const auto steps = CheckpointStore(work_ / "run").steps();
    Ran ran;
    Error error = train_error(ran, config_, work_ / "run", {.resume = ResumeMode::kNewest});
    EXPECT_TRUE(ran.steps.empty());
    EXPECT_EQ(read_file(work_ / "run/metrics.jsonl", 1 << 20), before);
    EXPECT_EQ(CheckpointStore(work_ / "run").steps(), steps);
    return error;
  }
  Ran resumed() { return train(config_, work_ / "run", {.resume = ResumeMode::kNewest}); }

  WorkFolder work_;
  TrainConfig config_ = tiny_config(2);
};

TEST_F(SameRun, AnotherTeacherUnderTheSameNameIsRefused) {
  put("two/best", "teacher");
  const Error error = refusal();
  EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
  EXPECT_NE(error.message().find("distill.teacher has other weights"), std::string::npos) << error.what();
  EXPECT_NE(error.hint().find("bring distill.teacher back"), std::string::npos) << error.what();
  // The same one elsewhere, without its manifest and later, is the same.
  put("one/best", "moved");
  fs::remove(work_ / "moved/manifest.json");
  config_.distill.teacher = work_ / "moved";
  const Ran ran = resumed();
  EXPECT_EQ(ran.outcome.step, 4);
  EXPECT_TRUE(ran.noted("distill.teacher")) << "its place has changed, which is said";
}

TEST_F(SameRun, ATeacherThatComputesOtherwiseIsRefused) {
  fs::remove_all(work_ / "teacher");
  write_changed(work_ / "one/best", work_ / "teacher", [](ModelCard& card) { card.config.norm_eps = 0.125; });
  const Error error = refusal();
  EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
  EXPECT_NE(error.message().find("teacher.model.norm_eps: the checkpoint has 1e-06, this run has 0.125"),
            std::string::npos)
      << error.what();
}

TEST_F(SameRun, OtherPixelsByTheInitialModelsFilesAreRefused) {
  fs::remove_all(work_ / "init");
  write_changed(work_ / "one/best", work_ / "init",
                [](ModelCard& card) { card.preprocess.interpolation = Interpolation::kBilinear; });
  const Error error = refusal();
  EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
  EXPECT_NE(error.message().find("card.preprocess.interpolation"), std::string::npos) << error.what();
  EXPECT_NE(error.hint().find("model.init"), std::string::npos) << error.what();
  // Its weights are in the checkpoints.
  put("two/best", "init");
  EXPECT_EQ(resumed().outcome.step, 4);
}

TEST_F(SameRun, CheckpointsOfEarlierVersionsSayNothingOfModels) {
  const std::string path = CheckpointStore(work_ / "run").folder_of(2) + "/" + kManifestName;
  Manifest manifest = parse_manifest(read_file(path, kMaxManifest), path);
  ASSERT_EQ(manifest.facts.erase("card") + manifest.facts.erase("teacher"), 2u);
  write_file(path, manifest_text(manifest));
  put("two/best", "teacher");
  const Ran ran = resumed();
  EXPECT_EQ(ran.outcome.step, 4);
  EXPECT_FALSE(ran.noted("checkpoint: teacher"));
}

std::string refused_facts(const Json& saved, const Json& now) {
  try {
    require_same_run(saved, now, [](const std::string&) {});
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(SameRunFacts, AConfigIsNotToldTwice) {
  const Json saved = {{"config", {{"model", {{"width", 16}}}}}, {"card", {{"model", {{"width", 16}}}}}};
  const Json now = {{"config", {{"model", {{"width", 32}}}}}, {"card", {{"model", {{"width", 32}}}}}};
  EXPECT_EQ(refused_facts(saved, now),
            "the checkpoint was made by another run:\n  config.model.width: the checkpoint has 16, this run "
            "has 32");
  EXPECT_EQ(refused_facts(saved, saved), "");
}

TEST(SameRunFacts, WhatDiffersIsToldByItsKind) {
  const auto facts = [](int data, int card, int teacher) {
    return Json{{"data", {{"size", data}}}, {"card", {{"x", card}}}, {"teacher", {{"weights", teacher}}}};
  };
  const Json saved = facts(1, 1, 1);
  EXPECT_TRUE(refused_facts(saved, facts(2, 1, 1)).starts_with("the data is not what"));
  EXPECT_TRUE(refused_facts(saved, facts(1, 2, 1)).starts_with("the files of the model say other"));
  EXPECT_EQ(refused_facts(saved, facts(1, 1, 2)),
            "the teacher is not what the run has learned from:\n  distill.teacher has other weights");
  EXPECT_TRUE(refused_facts(saved, facts(2, 1, 2)).starts_with("the checkpoint was made by another run"));
}

}  // namespace
}  // namespace vitrail::testing
