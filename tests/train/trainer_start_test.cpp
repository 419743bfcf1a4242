// How a run begins: in which folders, from which settings, with which files on the disk before its first
// update.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>

#include "io/model_files.h"
#include "models/vit_init.h"
#include "train/helpers/tiny_run.h"
#include "train/run_folder.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;
using Names = std::vector<std::string>;

struct Death : std::exception {};

// A run that ends after `step` as if killed: nothing is saved on the way out.
void die_after(int64_t step, const TrainConfig& config, const std::string& folder, ResumeMode resume) {
  const auto die = [&](const TrainStatus& status) {
    if (status.step == step) throw Death();
  };
  EXPECT_THROW(train(config, folder, {.resume = resume, .step = die}), Death);
}

TEST(Start, CanBeResumedFromItsFirstSecond) {
  const WorkFolder work;
  TrainConfig config = full_config(6);
  config.train.eval_every = 1;  // best/ is there before anything is saved by time or by steps
  train(config, work / "whole");
  die_after(1, config, work / "run", ResumeMode::kFresh);
  EXPECT_EQ(CheckpointStore(work / "run").steps(), Steps{0});
  die_after(4, config, work / "run", ResumeMode::kNewest);
  EXPECT_TRUE(fs::exists(work / "run/best"));
  const Ran ran = train(config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(ran.told("resume", "step 0"));
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_EQ(differing(state_of(work / "run"), state_of(work / "whole")), Names());
  EXPECT_EQ(metrics_of(work / "run"), metrics_of(work / "whole"));
}

TEST(Start, AStopBeforeTheFirstUpdateIsHeard) {
  const WorkFolder work;
  TrainHooks hooks;
  hooks.stop = [] { return true; };
  RankContext rank(cpu_device(1));
  Trainer trainer(tiny_config(4), {work / "run", ResumeMode::kFresh, ""}, cpu_backend(), rank, hooks);
  const TrainOutcome outcome = trainer.run();
  EXPECT_FALSE(outcome.finished);
  EXPECT_EQ(outcome.step, 0);
  EXPECT_EQ(CheckpointStore(work / "run").steps(), Steps{0});
}

TEST(Start, TheTimeLimitCountsFromTheStart) {
  const WorkFolder work;
  TrainConfig config = tiny_config(1000);
  config.train.max_minutes = 30;
  TrainPlace place{work / "run", ResumeMode::kFresh, ""};
  place.started -= std::chrono::minutes(31);  // opening the data took so long
  RankContext rank(cpu_device(1));
  const TrainOutcome outcome = Trainer(config, place, cpu_backend(), rank, {}).run();
  EXPECT_EQ(outcome.reason, "the time limit was reached");
  EXPECT_EQ(outcome.step, 1) << "one update, or a run that is started again and again would never end";
}

TEST(Start, AFolderThatIsNoRunsIsLeftAlone) {
  const std::pair<const char*, const char*> kForeign[] = {{"config.json", "{}"},
                                                          {"best/model.safetensors", "weights"},
                                                          {"summary.csv", "a,b"},
                                                          {"checkpoints/epoch=1.ckpt", "of another program"},
                                                          {"metrics.jsonl", "{\"epoch\": 1}\n"}};
  for (const auto& [name, content] : kForeign) {
    SCOPED_TRACE(name);
    const WorkFolder work;
    const std::string path = work / "run/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << content;
    for (const ResumeMode mode : {ResumeMode::kFresh, ResumeMode::kNewest}) {
      Ran ran;
      const Error error = train_error(ran, tiny_config(2), work / "run", {.resume = mode});
      EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
      EXPECT_NE(error.message().find(*fs::path(name).begin()), std::string::npos) << error.message();
    }
    EXPECT_EQ(read_file(path, 100), content);
    EXPECT_EQ(std::distance(fs::directory_iterator(work / "run"), fs::directory_iterator()), 1);
  }
}

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    files[entry.path().string()] = entry.is_regular_file() ? read_file(entry.path().string(), 1000) : "";
  return files;
}

// Folders with names that a run uses, too; or with nothing but what a run would take for its own leftovers.
TEST(Start, FoldersOfOtherProgramsThatLookAlikeAreLeftAlone) {
  const std::vector<Names> kFolders = {
      {"checkpoints/step-1000.ckpt", "best/model.pt", "config.json", "report.html"},
      {"checkpoints/", "best/model.pt", "config.json"},
      {"checkpoints/", "config.json"},
      {"checkpoints/step-00000010/weights.bin"},
      {"checkpoints/step-00000010/manifest.json", "best/model.safetensors"},
      {"checkpoints/latest/weights.bin"},
      {"checkpoints/", "summary.csv"},
      {"checkpoints"},
      {"metrics.jsonl"},
      {"run.lock"},
      {".tmp-mine/data"},
      {".config.json.tmp-mine"}};
  for (const Names& names : kFolders) {
    SCOPED_TRACE(names.front());
    const WorkFolder work;
    for (const std::string& name : names) {
      const fs::path path = work / "run/" + name;
      fs::create_directories(path.parent_path());
      if (path.has_filename()) std::ofstream(path) << "{\"kind\":\"theirs\"}\n";
    }
    const auto before = files_in(work / "run");
    Ran ran;
    const Error error = train_error(ran, tiny_config(2), work / "run");
    EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
    EXPECT_EQ(files_in(work / "run"), before);
  }
}

TEST(Start, AFileInPlaceOfTheFolderIsSaid) {
  const WorkFolder work;
  std::ofstream(work / "run") << "x";
  Ran ran;
  const Error error = train_error(ran, tiny_config(2), work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
  EXPECT_NE(error.hint().find("--out"), std::string::npos) << error.what();
}

TEST(Start, AnEmptyFolderAndOneOfADeadRunAreTaken) {
  const WorkFolder work;
  fs::create_directories(work / "empty");
  EXPECT_TRUE(train(tiny_config(2), work / "empty").outcome.finished);
  // The run was killed before step 0 was saved.
  fs::create_directories(work / "dead/checkpoints");
  for (const char* name : {"run.lock", "config.json", "metrics.jsonl", "summary.csv"})
    std::ofstream(work / "dead/" + name) << "";
  EXPECT_TRUE(train(tiny_config(2), work / "dead").outcome.finished);
}

TEST(Start, WhatADeadRunLeftUnfinishedIsRemoved) {
  const WorkFolder work;
  train(tiny_config(2), work / "run");
  fs::rename(work / "run/best", work / "run/.tmp-best-old");  // killed between two renames
  for (const char* name : {".config.json.tmp-12-1", ".summary.csv.tmp-12-2", ".report.html.tmp-12-3",
                           ".metrics.jsonl.tmp-12-4", ".tmp-model-3-elsewhere-12-34"})
    std::ofstream(work / "run/" + name) << "half";
  for (const char* name : {".config.json.tmp-12", ".config.json.tmp-mine", ".notes", ".tmp-mine"})
    std::ofstream(work / "run/" + name) << "the user's own";
  const Ran ran = train(tiny_config(2), work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(ran.noted(".config.json.tmp-12-1"));
  EXPECT_TRUE(fs::exists(work / "run/best/model.safetensors"));
  std::vector<std::string> hidden;
  for (const auto& entry : fs::directory_iterator(work / "run"))
    if (const std::string name = entry.path().filename().string(); name.starts_with("."))
      hidden.push_back(name);
  std::sort(hidden.begin(), hidden.end());
  EXPECT_EQ(hidden, (Names{".config.json.tmp-12", ".config.json.tmp-mine", ".notes", ".tmp-mine"}));
}

void set_preprocess(TrainConfig& config, const char* name,
                    const std::function<void(PreprocessConfig&)>& set) {
  set(config.model.preprocess);
  config.model.preprocess_given.insert(name);
}

TEST(Start, WhatCannotBeSavedIsRefusedBeforeAnythingIsLearnt) {
  const WorkFolder work;
  TrainConfig config = tiny_config(2);
  set_preprocess(config, "mean", [](PreprocessConfig& p) { p.mean = {0.5, 0.5}; });
  Ran ran;
  const Error error = train_error(ran, config, work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
  EXPECT_NE(error.message().find("mean"), std::string::npos) << error.message();
  EXPECT_TRUE(ran.steps.empty());
  EXPECT_FALSE(fs::exists(work / "run"));
}

TEST(Start, ImagesThatCannotBeMadeAreRefusedBeforeAnythingIsWritten) {
  const WorkFolder work;
  TrainConfig config = tiny_config(2);
  set_preprocess(config, "resampler", [](PreprocessConfig& p) { p.resampler = Resampler::kTf; });
  Ran ran;
  const Error error = train_error(ran, config, work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
  EXPECT_NE(error.message().find("found bicubic"), std::string::npos) << error.message();
  EXPECT_FALSE(fs::exists(work / "run"));
  set_preprocess(config, "interpolation",
                 [](PreprocessConfig& p) { p.interpolation = Interpolation::kBilinear; });
  EXPECT_TRUE(train(config, work / "run").outcome.finished);
}

TEST(Start, PreprocessingMayBeSaidInShort) {
  const WorkFolder work;
  TrainConfig config = tiny_config(2);
  set_preprocess(config, "mean", [](PreprocessConfig& p) { p.mean = {0.25}; });
  set_preprocess(config, "crop_pct", [](PreprocessConfig& p) { p.crop_pct = 0.5; });
  EXPECT_TRUE(train(config, work / "run").outcome.finished);
  const PreprocessConfig saved = open_model(work / "run/best")->card().preprocess;
  EXPECT_EQ(saved.mean, std::vector<double>(3, 0.25));
  EXPECT_EQ(saved.resize, 16);
}

TEST(Start, ResizingBelowTheCropIsSavedAsItIs) {
  const WorkFolder work;
  TrainConfig config = tiny_config(2);
  set_preprocess(config, "resize", [](PreprocessConfig& p) { p.resize = 4; });
  const Ran ran = train(config, work / "run");
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_EQ(ran.events_of("write_failed"), 0);
  for (const char* place : {"run/best", "run/checkpoints/latest"}) {
    const PreprocessConfig saved = open_model(work / place)->card().preprocess;
    EXPECT_EQ(saved.height, 8) << place;
    EXPECT_EQ(saved.resize, 4) << place;
    EXPECT_EQ(saved.crop_pct, 0) << place;
  }
}

TEST(Start, AnArchitectureAtAnotherSizeCanBeSaved) {
  const WorkFolder work;
  TrainConfig config = tiny_config(1);
  config.model.arch = "vit_tiny_patch16_224";
  EXPECT_TRUE(train(config, work / "run").outcome.finished);
  const PreprocessConfig saved = open_model(work / "run/best")->card().preprocess;
  EXPECT_EQ(saved.height, 8);
  EXPECT_EQ(saved.crop_pct, 0) << "the architecture's own belongs to its own size";
}

TEST(Start, FixedPositionsAreStoredAsATable) {
  const WorkFolder work;
  TrainConfig config = tiny_config(3);
  set_model(config, "pos", [](VitConfig& m) { m.pos = PosKind::kSinCos2d; });
  set_model(config, "pos_for_prefix", [](VitConfig& m) { m.pos_for_prefix = false; });
  const Ran ran = train(config, work / "run");
  EXPECT_EQ(ran.events_of("write_failed"), 0);
  for (const char* place : {"run/best", "run/checkpoints/latest"}) {
    const auto model = open_model(work / place);
    EXPECT_EQ(model->card().config.pos, PosKind::kLearned);
    for (const ParamSpec& spec : vit_params(model->card().config))
      if (spec.name == "pos_embed") {
        std::vector<float> stored(static_cast<size_t>(spec.shape.elems()));
        model->read_param(spec, stored);
        EXPECT_EQ(stored, fixed_positions(model->card().config));
      }
  }
  // The run continues with fixed positions, from the state.
  config.train.steps = 4;
  EXPECT_EQ(train(config, work / "run", {.resume = ResumeMode::kNewest}).outcome.step, 4);
}

}  // namespace
}  // namespace vitrail::testing
