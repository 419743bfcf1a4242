// What a run keeps when saving fails, and what it reports when its data has changed.
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "data/decode.h"
#include "faults/small_disk.h"
#include "io/checkpoint/manifest.h"
#include "io/model_files.h"
#include "train/checkpoint_keeper.h"
#include "train/helpers/tiny_run.h"
#include "train/save_policy.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;

// A run's keeper and its step, without the run.
struct Kept {
  explicit Kept(const std::string& folder)
      : setup(set_up(tiny_config(4))),
        plan(plan_step(setup.step, cpu_backend(), cpu_device(1))),
        rank(cpu_device(1), 0),
        step(plan, rank),
        keeper({folder, ResumeMode::kFresh, ""}, setup, Json::object(), [](const std::string&) {}) {
    step.start(setup.model->filler());
    keeper.prepare(true);
  }
  RunSetup setup;
  StepPlan plan;
  RankContext rank;
  TrainStep step;
  CheckpointKeeper keeper;
};

TEST(Keep, WhateverFailsInASaveIsToldAndTheRunGoesOn) {
  const WorkFolder work;
  fs::create_directories(work / "run");
  Kept run(work / "run");
  std::vector<std::string> told;
  bool broken = false;
  const Team alone(nullptr);
  SavePolicy saver(
      run.keeper, alone, run.step, run.setup.config.train, false,
      {.event = [&](const char* what,
                    const std::string& text) { told.push_back(std::string(what) + ": " + text); },
       .before_save =
           [&] {
             if (broken) throw std::runtime_error("no JSON");  // of no kind of ours
           }});
  saver.save_first({});
  broken = true;
  saver.save({.step = 1});
  EXPECT_EQ(told, std::vector<std::string>{"write_failed: checkpoint not written: no JSON"});
  EXPECT_EQ(run.keeper.saved_step(), 0);
  broken = false;
  saver.save({.step = 2});
  EXPECT_EQ(CheckpointStore(work / "run").steps(), (Steps{0, 2}));
}

TEST(Keep, ASaveThatWasDueAmongSkippedUpdatesComesWithTheNextThatIsMade) {
  const WorkFolder work;
  fs::create_directories(work / "run");
  Kept run(work / "run");
  RunConfig config = run.setup.config.train;
  config.save_every = 2;
  const Team alone(nullptr);
  SavePolicy saver(run.keeper, alone, run.step, config, false,
                   {.event = [](const char*, const std::string&) {}, .before_save = [] {}});
  const auto after = [&](int64_t step, bool by_time, bool made) {
    saver.save_if_due({.step = step}, by_time, [&] { return made; });
    return CheckpointStore(work / "run").steps();
  };
  EXPECT_EQ(after(2, false, false), Steps{});
  EXPECT_EQ(after(3, false, true), Steps{3});
  EXPECT_EQ(after(5, false, true), Steps{3}) << "it is due no more";
  EXPECT_EQ(after(7, true, false), Steps{3});
  EXPECT_EQ(after(9, false, true), (Steps{3, 9}));
}

TEST(Keep, EveryCheckpointIsWrittenAndToldOnce) {
  const WorkFolder work;
  fs::create_directories(work / "run");
  Kept run(work / "run");
  Steps told;
  const Team alone(nullptr);
  SavePolicy saver(run.keeper, alone, run.step, run.setup.config.train, false,
                   {.event = [](const char*, const std::string&) {},
                    .before_save = [] {},
                    .saved = [&](int64_t step) { told.push_back(step); }});
  saver.save_first({});
  saver.save({.step = 1});
  saver.save({.step = 1});
  EXPECT_EQ(told, (Steps{0, 1}));
  saver.save_anew({.step = 1});
  saver.save_last({.step = 2});
  EXPECT_EQ(told, (Steps{0, 1, 1, 2})) << "a rollback replaces what was saved";
}

TEST(Keep, TheLastCheckpointIsTriedAgainAndThenTheModelAlone) {
  const WorkFolder work;
  fs::create_directories(work / "run");
  Kept run(work / "run");
  int failures = 1;
  const Team alone(nullptr);
  SavePolicy saver(run.keeper, alone, run.step, run.setup.config.train, false,
                   {.event = [](const char*, const std::string&) {},
                    .before_save =
                        [&] {
                          if (failures-- > 0) throw Error(ErrorKind::kWrite, "no room");
                        }});
  saver.save_last({.step = 3});
  EXPECT_EQ(run.keeper.saved_step(), 3);
  failures = 2;
  try {
    saver.save_last({.step = 4});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kWrite);
    EXPECT_NE(error.hint().find(work / "run/last"), std::string::npos) << error.hint();
  }
  EXPECT_EQ(open_model(work / "run/last")->card().config.width, 16);
  saver.save_last({.step = 4});
  EXPECT_FALSE(fs::exists(work / "run/last")) << "the checkpoint holds it";
}

// The disk has room for the model, but for no checkpoint, when the run ends.
TEST(Keep, AFullDiskAtTheEndLeavesTheModel) {
  const WorkFolder work;
  const SmallDisk disk(work / "disk", 4 << 20);
  if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
  TrainConfig config = tiny_config(3);
  Ran ran;
  const Error error = train_error(ran, config, work / "disk/run", {.step = [&](const TrainStatus& status) {
                                    if (status.step != 2) return;
                                    const size_t room = fs::space(work / "disk").available;
                                    std::ofstream(work / "disk/filler") << std::string(room - 90'000, 'x');
                                  }});
  EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
  EXPECT_NE(error.hint().find("disk/run/last"), std::string::npos) << error.what();
  EXPECT_EQ(open_model(work / "disk/run/last")->card().config.width, 16);
  fs::remove(work / "disk/filler");
  EXPECT_TRUE(train(config, work / "disk/run", {.resume = ResumeMode::kNewest}).outcome.finished);
  EXPECT_FALSE(fs::exists(work / "disk/run/last"));
}

// An evaluation that finds a new best result comes first: the oldest checkpoint makes room for its model.
TEST(Keep, ACheckpointMakesRoomForTheBestModel) {
  const WorkFolder work;
  const SmallDisk disk(work / "disk", 4 << 20);
  if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
  fs::create_directories(work / "disk/run");
  Kept run(work / "disk/run");
  for (int64_t step = 1; step <= 3; ++step) run.keeper.save({.step = step}, run.step, kLeastGood, {});
  Steps gone;
  run.keeper.on_made_room([&](int64_t step) { gone.push_back(step); });
  run.keeper.write_best(run.step, false);
  EXPECT_EQ(gone, Steps{}) << "there is room";
  fs::remove_all(work / "disk/run/best");
  std::ofstream(work / "disk/filler") << std::string(fs::space(work / "disk").available - 8192, 'x');
  run.keeper.write_best(run.step, false);
  EXPECT_EQ(gone, Steps{1});
  EXPECT_EQ(CheckpointStore(work / "disk/run").steps(), (Steps{2, 3}));
  EXPECT_EQ(open_model(work / "disk/run/best")->card().config.width, 16);
}

// last/ and best/ are removed and replaced whole, but only a run's own.
TEST(Keep, WhatTheUserCalledLastOrBestStays) {
  const WorkFolder work;
  train(tiny_config(2), work / "run");
  for (const char* name : {"run/last", "run/best"}) {
    fs::create_directories(work / name);
    std::ofstream(work / name + "/notes.txt") << "mine";
    Ran ran;
    const Error error = train_error(ran, tiny_config(4), work / "run", {.resume = ResumeMode::kNewest});
    EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
    EXPECT_NE(error.message().find(work / name), std::string::npos) << error.what();
    EXPECT_TRUE(ran.steps.empty());
    EXPECT_EQ(read_file(work / name + "/notes.txt", 10), "mine");
    fs::remove(work / name + "/notes.txt");
  }
  fs::create_directories(work / "elsewhere");
  Kept run(work / "elsewhere");
  fs::create_directories(work / "elsewhere/last");
  std::ofstream(work / "elsewhere/last/config.json") << "{}";
  run.keeper.save({.step = 1}, run.step, kLeastGood, {});
  EXPECT_THROW(run.keeper.write_last(run.step, false), Error);
  EXPECT_EQ(read_file(work / "elsewhere/last/config.json", 10), "{}") << "made while the run went on";
}

TEST(Keep, TheReadmeOfBestStaysWithTheNextBest) {
  const WorkFolder work;
  fs::create_directories(work / "run");
  Kept run(work / "run");
  run.keeper.write_best(run.step, false);
  std::ofstream(work / "run/best/README.md") << "mine";
  run.keeper.write_best(run.step, false);
  EXPECT_EQ(read_file(work / "run/best/README.md", 10), "mine");
}

void write_images(const std::string& folder, uint8_t shade) {
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 6; ++i) {
      Image image = Image::blank(8, 8, 3);
      std::fill(image.pixels.begin(), image.pixels.end(),
                static_cast<uint8_t>(shade + i + (*name == 'b' ? 100 : 0)));
      fs::create_directories(folder + "/" + name);
      write_png(folder + "/" + name + "/" + std::to_string(i) + ".png", image);
    }
}

class KeptData : public ::testing::Test {
 protected:
  KeptData() {
    write_images(work_ / "data/train", 10);
    write_images(work_ / "data/val", 20);
    config_.data.train = "folder:" + (work_ / "data");
    config_.train.eval_every = 1;
  }
  WorkFolder work_;
  TrainConfig config_ = tiny_config(2);
};

TEST_F(KeptData, OtherPixelsUnderTheSameNamesAreAnotherRun) {
  train(config_, work_ / "run");
  config_.train.steps = 4;
  write_images(work_ / "data/train", 100);
  Ran ran;
  const Error error = train_error(ran, config_, work_ / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(error.kind(), ErrorKind::kConfig) << error.what();
  EXPECT_NE(error.message().find("images under the same names have changed"), std::string::npos);
  EXPECT_EQ(error.message().find("the checkpoint has"), std::string::npos) << error.message();
  EXPECT_EQ(error.hint().find("config"), std::string::npos) << "it is the same: " << error.hint();
  write_images(work_ / "data/train", 10);
  EXPECT_TRUE(train(config_, work_ / "run", {.resume = ResumeMode::kNewest}).outcome.finished);
}

TEST_F(KeptData, OtherValidationDataIsSaidAndItsResultsCountAnew) {
  const Ran first = train(config_, work_ / "run");
  ASSERT_GT(first.outcome.best, 0);
  config_.train.steps = 3;
  // Every image is in the other class, so no evaluation is as good as before.
  fs::rename(work_ / "data/val/a", work_ / "data/val/c");
  fs::rename(work_ / "data/val/b", work_ / "data/val/a");
  fs::rename(work_ / "data/val/c", work_ / "data/val/b");
  const Ran second = train(config_, work_ / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(second.noted("validation images under the same names")) << "a class has other images";
  EXPECT_TRUE(second.noted("other validation data"));
  ASSERT_EQ(second.evals.size(), 1u);
  EXPECT_TRUE(second.evals[0].best) << "the first result on other data is the best on them";
}

// What was without success on the old data says nothing of the new.
TEST_F(KeptData, ARunOutOfPatienceGoesOnWithOtherValidationData) {
  config_.optim.lr = 1e-12;  // every result is as good as the first
  config_.train.steps = 10;
  config_.train.patience = 2;
  EXPECT_EQ(train(config_, work_ / "run").outcome.step, 3);
  EXPECT_EQ(train(config_, work_ / "run", {.resume = ResumeMode::kNewest}).outcome.step, 3);
  write_images(work_ / "data/val", 60);
  const Ran ran = train(config_, work_ / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(ran.noted("other validation data"));
  EXPECT_EQ(ran.outcome.step, 6);
}

// Checkpoints of earlier versions do not say what they were evaluated on.
TEST_F(KeptData, ValidationDataThatACheckpointDoesNotNameIsNoOther) {
  const Ran first = train(config_, work_ / "run");
  ASSERT_GT(first.outcome.best, 0);
  const std::string path = CheckpointStore(work_ / "run").folder_of(2) + "/" + kManifestName;
  Manifest manifest = parse_manifest(read_file(path, kMaxManifest), path);
  ASSERT_EQ(manifest.facts.erase("val"), 1u);
  write_file(path, manifest_text(manifest));
  config_.train.steps = 3;
  const Ran second = train(config_, work_ / "run", {.resume = ResumeMode::kNewest});
  EXPECT_FALSE(second.noted("other validation data"));
  EXPECT_FALSE(second.noted("changed since the checkpoint: val"));
  EXPECT_GE(second.outcome.best, first.outcome.best);
}

TEST_F(KeptData, TheSameDataElsewhereIsTheSameRun) {
  train(config_, work_ / "run");
  fs::rename(work_ / "data", work_ / "moved");
  config_.data.train = "folder:" + (work_ / "moved");
  config_.train.steps = 3;
  const Ran ran = train(config_, work_ / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_FALSE(ran.noted("other validation data"));
}

}  // namespace
}  // namespace vitrail::testing
