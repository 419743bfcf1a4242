// What a model had learned from before its run, by model.init: it is kept from run to run, and evaluations
// and the run itself know it.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "io/find_model.h"
#include "io/sealed_folder.h"
#include "train/eval_data.h"
#include "train/helpers/noise_images.h"
#include "train/helpers/tiny_run.h"
#include "train/learned_from.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

struct Measured {
  double seen = -1;  // not known
  int64_t size = 0;
  std::string said;
};

Measured measured(const std::string& model, const std::string& data = "", const std::string& part = "") {
  Measured found;
  const EvalData opened = open_eval_data({.model = model,
                                          .data = data,
                                          .part = part,
                                          .find = [](auto& name) { return find_model(name, {}); },
                                          .say = [&](auto& text) { found.said += text + "\n"; }});
  found.size = opened.set->size();
  if (opened.seen) found.seen = opened.seen->share();
  return found;
}

std::set<std::string> names_of(const Dataset& data) {
  std::set<std::string> names;
  for (int64_t i = 0; i < data.size(); ++i) names.insert(data.sample_name(i));
  return names;
}

// The share of these images that the others hold, too; for parts of one folder.
double share_within(const Dataset& images, const Dataset& others) {
  int64_t within = 0;
  const std::set<std::string> names = names_of(others);
  for (const std::string& name : names_of(images)) within += names.contains(name) ? 1 : 0;
  return static_cast<double>(within) / static_cast<double>(images.size());
}

std::vector<EarlierImages> earlier_of(const std::string& run) {
  return read_learned_from(kept_facts(run + "/checkpoints/latest")).value().earlier;
}

class LearnedEarlier : public ::testing::Test {
 protected:
  TrainConfig on(const std::string& data, double val_fraction, const std::string& init = "") {
    TrainConfig config = tiny_config(2);
    config.data.train = data;
    config.data.val_fraction = val_fraction;
    if (!init.empty()) config.model.init = work_ / init + "/best";
    return config;
  }
  WorkFolder work_;
  std::string pets_ = noise_folder(work_ / "pets", 0, 60), others_ = noise_folder(work_ / "others", 100, 40);
};

TEST_F(LearnedEarlier, WhatTheInitialModelLearnedOfAnotherPartIsKnown) {
  const TrainConfig a = on(pets_, 0.2), c = on(pets_, 0.5, "a");
  train(a, work_ / "a");
  const Ran ran = train(c, work_ / "c");
  const double share = share_within(*open_data(c.data).val, *open_data(a.data).train);
  ASSERT_GT(share, 0.5);
  EXPECT_TRUE(ran.told("seen_validation", "some before its run"));
  const Measured own = measured(work_ / "c");
  EXPECT_NEAR(own.seen, share, 1e-9);
  EXPECT_NE(own.said.find("warning: the model has learned from"), std::string::npos) << own.said;
  EXPECT_NEAR(measured(work_ / "c", pets_).seen, share, 1e-9);
  // The data is elsewhere and the model has left its run: marks alone tell.
  noise_folder(work_ / "renamed", 0, 60, "copy-of-");
  fs::rename(work_ / "pets", work_ / "gone");
  fs::copy(work_ / "c/best", work_ / "alone", fs::copy_options::recursive);
  const double all =
      static_cast<double>(
          open_data({.train = "folder:" + (work_ / "gone"), .val_fraction = 0.5}).train->size() +
          std::llround(share * static_cast<double>(own.size))) /
      60;
  EXPECT_NEAR(measured(work_ / "alone", "folder:" + (work_ / "renamed")).seen, all, 1e-9);
}

TEST_F(LearnedEarlier, ItGoesOnFromRunToRun) {
  const std::string third = noise_folder(work_ / "third", 200, 20);
  train(on(others_, 0.25), work_ / "a");
  train(on(pets_, 0.25, "a"), work_ / "b");
  train(on(third, 0.25, "b"), work_ / "c");
  const double share = static_cast<double>(open_data(on(others_, 0.25).data).train->size()) / 40;
  for (const char* run : {"a", "b", "c"})
    EXPECT_NEAR(measured(work_ / run, others_, "all").seen, share, 1e-9) << run;
  EXPECT_EQ(measured(work_ / "c").seen, 0) << "these are new to all of them";
  EXPECT_EQ(measured(work_ / "c").said.find("warning"), std::string::npos);
}

// The initial model is replaced by one that has learned from nothing of the kind; its weights are no longer
// read.
TEST_F(LearnedEarlier, AResumedRunKeepsWhatItBeganWith) {
  train(on(others_, 0.25), work_ / "a");
  TrainConfig config = on(pets_, 0.25, "a");
  train(config, work_ / "b");
  const std::vector<EarlierImages> began = earlier_of(work_ / "b");
  ASSERT_EQ(began.size(), 1u);
  fs::remove_all(work_ / "a");
  train(on(pets_, 0.25), work_ / "a");
  config.train.steps = 4;
  train(config, work_ / "b", {.resume = ResumeMode::kNewest});
  const std::vector<EarlierImages> kept = earlier_of(work_ / "b");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].size, began[0].size);
  EXPECT_EQ(kept[0].images, began[0].images);
}

// A model folder that says it had learned from the marks of so many sets.
void write_learned(const std::string& folder, const LearnedFrom& learned) {
  fs::create_directories(folder);
  write_file(folder + "/weights", "x");
  seal_folder(folder, {{kLearnedFrom, to_json(learned)}});
}

std::vector<ImageMark> some_marks(uint64_t first, uint64_t count) {
  std::vector<ImageMark> marks;
  for (uint64_t i = 0; i < count; ++i) marks.push_back({.bytes = 7, .key = first + i});
  return marks;
}

TEST_F(LearnedEarlier, ItStaysBoundedAndIsTheSameEveryTime) {
  const auto data = open_dataset("synthetic:3x8x8x4x20", Part::kTrain);
  LearnedFrom before = learned_from({}, *open_dataset("synthetic:3x8x8x4x50", Part::kTrain));
  int64_t images = 30;  // that are not among the 20
  for (uint64_t i = 1; i <= 6; ++i) {
    before.earlier.push_back({.size = static_cast<int64_t>(1000 * i), .images = some_marks(1000 * i, 300)});
    images += before.earlier.back().size;
  }
  write_learned(work_ / "model", before);
  const LearnedFrom now = learned_from({}, *data);
  const std::vector<EarlierImages> sets = learned_earlier(work_ / "model", now, *data);
  ASSERT_EQ(sets.size(), 4u);
  EXPECT_EQ(sets[0].size, 30);
  EXPECT_EQ(sets[0].images.size(), 30u);
  int64_t kept = 0;
  for (const EarlierImages& set : sets) {
    kept += set.size;
    EXPECT_LE(set.images.size(), 256u);
  }
  EXPECT_EQ(kept, images);
  const std::vector<ImageMark>& oldest = sets[3].images;
  EXPECT_TRUE(std::any_of(oldest.begin(), oldest.end(), [](auto& mark) { return mark.key >= 6000; }));
  EXPECT_TRUE(std::any_of(oldest.begin(), oldest.end(), [](auto& mark) { return mark.key < 4000; }));
  LearnedFrom once = now, twice = now;
  once.earlier = sets;
  twice.earlier = learned_earlier(work_ / "model", now, *data);
  EXPECT_EQ(to_json(once), to_json(twice));
}

TEST_F(LearnedEarlier, TheSameDataAndModelsWithoutMarksLeaveNothing) {
  const auto data = open_dataset("synthetic:3x8x8x4x20", Part::kTrain);
  const LearnedFrom now = learned_from({}, *data);
  write_learned(work_ / "model", now);
  EXPECT_TRUE(learned_earlier(work_ / "model", now, *data).empty());
  EXPECT_TRUE(learned_earlier(work_ / "missing", now, *data).empty());
  EXPECT_TRUE(learned_earlier("", now, *data).empty());
}

TEST_F(LearnedEarlier, ARunsTrainingPartIsMeasuredWhereItIsAskedFor) {
  const TrainConfig config = on(pets_, 0.25);
  train(config, work_ / "run");
  const Measured own = measured(work_ / "run", "", "train");
  EXPECT_EQ(own.size, open_data(config.data).train->size());
  EXPECT_EQ(own.seen, 1);
  EXPECT_NE(own.said.find("warning: the model has learned from 100"), std::string::npos) << own.said;
  EXPECT_EQ(measured(work_ / "run", "", "val").size, open_data(config.data).val->size());
  try {
    measured(work_ / "run", "", "all");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(error.hint().find("--data"), std::string::npos) << error.hint();
  }
}

class SeenValidation : public LearnedEarlier {
 protected:
  static std::string line_of(const std::string& run) {
    std::string lines;
    for (const std::string& line : metrics_of(run))
      if (line.find("seen_validation") != std::string::npos) lines += line + "\n";
    return lines;
  }
};

TEST_F(SeenValidation, CopiesOfTrainingImagesAreSaidOnceInTheLog) {
  TrainConfig config = on(pets_, 0);
  config.data.val = noise_folder(work_ / "copies", 40, 20, "copy-of-");
  noise_folder(work_ / "copies", 300, 20);
  const Ran first = train(config, work_ / "run");
  EXPECT_TRUE(first.told("seen_validation", "warning: 50.00 %"));
  EXPECT_EQ(first.events_of("seen_validation"), 1);
  config.train.steps = 4;
  const Ran second = train(config, work_ / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(second.events_of("seen_validation"), 0);
  EXPECT_TRUE(second.noted("warning: 50.00 %"));
  const std::string lines = line_of(work_ / "run");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
  config.data.val = pets_;
  EXPECT_TRUE(train(config, work_ / "itself").told("seen_validation", "warning: 100.00 %"));
}

// Empty files, and others that are no images, are nobody's training images, however alike they are.
TEST_F(SeenValidation, OtherImagesAndBrokenFilesAreNot) {
  TrainConfig config = on(pets_, 0);
  config.data.val = others_;
  config.loader.on_error = OnError::kSkip;
  config.loader.max_bad_fraction = 0.5;
  for (const char* part : {"pets/a/", "others/a/"})
    for (int i = 0; i < 5; ++i) {
      write_file(work_ / part + "empty" + std::to_string(i) + ".png", "");
      write_file(work_ / part + "half" + std::to_string(i) + ".png", noise_image(1).substr(0, 100));
    }
  const Ran ran = train(config, work_ / "run");
  EXPECT_EQ(ran.events_of("seen_validation"), 0);
  EXPECT_EQ(measured(work_ / "run").seen, 0);
  EXPECT_EQ(measured(work_ / "run").said.find("warning"), std::string::npos);
}

}  // namespace
}  // namespace vitrail::testing
