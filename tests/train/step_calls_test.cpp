// A step of one rank, called as a run calls it and as none may: what it refuses, and what it counts.
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "ops/update/control.h"
#include "thrown.h"
#include "train/helpers/stepped.h"

namespace vitrail::testing {
namespace {

constexpr int64_t kEvalBatch = 5;

class CalledStep : public ::testing::Test {
 protected:
  CalledStep() : setup_(set_up(config())), rank_(cpu_device(1)), plan_(plan()), step_(plan_, rank_) {
    step_.start(setup_.model->filler());
  }

  static TrainConfig config() {
    TrainConfig config = tiny_config(1);
    config.train.eval_batch = kEvalBatch;
    return config;
  }
  StepPlan plan() const { return plan_step(setup_.step, cpu_backend(), rank_.device); }

  static std::vector<float> images(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count * 3 * 8 * 8));
    for (size_t i = 0; i < values.size(); ++i) values[i] = counter_uniform(3, i);
    return values;
  }
  std::vector<float> answers(int64_t count) {
    const auto logits = step_.evaluate(images(kEvalBatch), count, false);
    return {logits.begin(), logits.end()};
  }
  // An update by images of which one is no number, or all are.
  StepValues update(bool good) {
    std::vector<float> pixels = images(8);
    if (!good) pixels[17] = NAN;
    const std::vector<float> targets(8 * 4, 0.25f), weights(8, 0.125f);
    step_.run_micro({.images = pixels, .targets = targets, .weights = weights, .teacher = {}});
    return step_.run_update(0.001);
  }
  std::vector<double> counted() const {
    const auto counters = step_.update_counters();
    return {counters[kAppliedUpdates], counters[kSkippedUpdates], counters[kSkippedInARow]};
  }
  // What a fault of Vitrail's own code says, behind its place.
  static std::string fault(const std::function<void()>& call) {
    const std::string said = thrown_by(call);
    const size_t at = said.find("does not hold: ");
    return at == std::string::npos ? said : said.substr(at + 15, said.find(" | ") - at - 15);
  }

  RunSetup setup_;
  RankContext rank_;
  StepPlan plan_;
  TrainStep step_;
};

TEST_F(CalledStep, AnswersForAsManyImagesAsABatchHolds) {
  const std::vector<float> all = answers(kEvalBatch);
  ASSERT_EQ(all.size(), 20u) << "four classes";
  for (const int64_t count : {1, 2, 4})
    EXPECT_EQ(answers(count), std::vector<float>(all.begin(), all.begin() + 4 * count)) << count;
  for (const int64_t count : {-1, 0, 6})
    EXPECT_EQ(fault([&] { answers(count); }), strf("%d images for a batch of 5", static_cast<int>(count)));
}

TEST_F(CalledStep, OfOneRankIsNoStageAndHasNoParts) {
  EXPECT_EQ(fault([&] { step_.run_pipeline([](int64_t, bool) { return MicroBatch(); }); }),
            "the step is no stage of a pipeline");
  EXPECT_EQ(fault([&] { step_.whole().table(); }), "there is one rank");
  EXPECT_EQ(&step_.whole().values(), &step_.store().layout().values());
  EXPECT_TRUE(step_.whole().has("head.bias"));
  EXPECT_FALSE(step_.whole().has("nothing"));
  EXPECT_EQ(step_.whole().read_floats("head.bias").size(), 4u);
  step_.whole().serve();  // nobody asks
  step_.whole().end_serving();
}

TEST_F(CalledStep, WhatDoesNotFillItsInputIsRefused) {
  const std::vector<float> pixels = images(8), few(7, 0.125f), targets(8 * 4, 0.25f), weights(8, 0.125f);
  const auto with = [&](std::span<const float> given_images, std::span<const float> given_targets,
                        std::span<const float> given_weights) {
    return fault([&] {
      step_.run_micro(
          {.images = given_images, .targets = given_targets, .weights = given_weights, .teacher = {}});
    });
  };
  EXPECT_EQ(with(pixels, targets, weights), "nothing");
  EXPECT_TRUE(with(few, targets, weights).starts_with("7 floats for f32")) << with(few, targets, weights);
  EXPECT_TRUE(with(pixels, few, weights).starts_with("7 floats for f32")) << with(pixels, few, weights);
  EXPECT_TRUE(with(pixels, targets, few).starts_with("7 floats for f32")) << with(pixels, targets, few);
}

TEST_F(CalledStep, CountsUpdatesThatWereSkipped) {
  using Counts = std::vector<double>;  // applied, skipped, skipped in a row
  EXPECT_EQ(counted(), (Counts{0, 0, 0}));
  EXPECT_EQ(update(true).skip, 0);
  EXPECT_EQ(counted(), (Counts{1, 0, 0}));
  for (int i = 1; i <= 2; ++i) {
    EXPECT_NE(update(false).skip, 0);
    EXPECT_EQ(counted(), (Counts{1, 1.0 * i, 1.0 * i}));
  }
  EXPECT_EQ(update(true).skip, 0);
  EXPECT_EQ(counted(), (Counts{2, 2, 0}));
  EXPECT_EQ(step_.loss_scale(), 1);
}

}  // namespace
}  // namespace vitrail::testing
