// An interrupted run ends as the uninterrupted one does, bit for bit: whenever it stops, on any number of
// threads and workers, in any precision.
#include <gtest/gtest.h>

#include "train/helpers/tiny_run.h"

namespace vitrail::testing {
namespace {

constexpr int64_t kSteps = 12;  // two epochs of five and the start of a third
constexpr size_t kMost = 1 << 20;

void expect_same_run(const std::string& found, const std::string& wanted) {
  EXPECT_EQ(differing(state_of(found), state_of(wanted)), std::vector<std::string>());
  EXPECT_EQ(metrics_of(found), metrics_of(wanted));
  EXPECT_EQ(read_file(RunFiles(found).summary(), kMost), read_file(RunFiles(wanted).summary(), kMost));
}

class Resume : public ::testing::TestWithParam<ComputeType> {
 protected:
  static TrainConfig config() {
    TrainConfig config = full_config(kSteps);
    config.train.dtype = GetParam();
    return config;
  }
};

TEST_P(Resume, StoppedAfterAnyStep) {
  const WorkFolder work;
  const Ran whole = train(config(), work / "whole");
  ASSERT_TRUE(whole.outcome.finished);
  ASSERT_GT(state_of(work / "whole").size(), 100u);
  const bool every = GetParam() == ComputeType::kF32 || is_long();
  for (int64_t stop = 1; stop < kSteps; stop += every ? 1 : 4) {
    SCOPED_TRACE(stop);
    const std::string folder = work / std::to_string(stop);
    const Ran first = train(config(), folder, {.stop_after = stop});
    EXPECT_FALSE(first.outcome.finished);
    EXPECT_EQ(first.outcome.step, stop);
    const Ran second = train(config(), folder, {.resume = ResumeMode::kNewest});
    EXPECT_TRUE(second.outcome.finished);
    EXPECT_TRUE(second.told("resume", "step " + std::to_string(stop)));
    EXPECT_EQ(second.outcome.best, whole.outcome.best);
    expect_same_run(folder, work / "whole");
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Resume,
                         ::testing::Values(ComputeType::kF32, ComputeType::kBF16, ComputeType::kF16),
                         [](const auto& test) { return enum_name(test.param); });

TEST(ResumeRun, StoppedAfterEveryStepOnOtherThreads) {
  const WorkFolder work;
  const TrainConfig config = full_config(kSteps);
  train(config, work / "whole");
  for (int64_t step = 1; step <= kSteps; ++step) {
    TrainConfig changed = config;
    changed.loader.workers = 1 + step % 3;
    const Ran life =
        train(changed, work / "lives",
              {.resume = ResumeMode::kNewest, .threads = 1 + static_cast<int>(step % 3), .stop_after = step});
    EXPECT_FALSE(life.outcome.finished);
    EXPECT_EQ(life.outcome.step, step);
  }
  // The run is stopped during the last evaluation, which is all that is left to do.
  const Ran last = train(config, work / "lives", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(last.outcome.finished);
  EXPECT_TRUE(last.steps.empty());
  EXPECT_EQ(last.evals.size(), 2u);
  expect_same_run(work / "lives", work / "whole");
}

// The run is stopped before an evaluation; its next life makes that up, and dies before it saves anything.
TEST(ResumeRun, AnEvaluationThatADeathUndidIsInTheLogOnce) {
  const WorkFolder work;
  TrainConfig config = full_config(kSteps);
  config.train.eval_every = 5;  // at the end of an epoch
  train(config, work / "whole");
  const std::string saved = work / "run/checkpoints", aside = work / "aside";
  EXPECT_EQ(train(config, work / "run", {.stop_after = 5}).evals.size(), 0u);
  std::filesystem::copy(
      saved, aside, std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  EXPECT_EQ(train(config, work / "run", {.resume = ResumeMode::kNewest, .stop_after = 6}).evals.size(), 2u);
  std::filesystem::remove_all(saved);
  std::filesystem::rename(aside, saved);
  EXPECT_TRUE(train(config, work / "run", {.resume = ResumeMode::kNewest}).outcome.finished);
  expect_same_run(work / "run", work / "whole");
}

TEST(ResumeRun, ThreadsAndWorkersChangeNoBit) {
  for (ComputeType dtype : {ComputeType::kF32, ComputeType::kBF16}) {
    const WorkFolder work;
    TrainConfig config = full_config(kSteps);
    config.train.dtype = dtype;
    train(config, work / "one");
    for (int threads : {1, 2, 3})
      for (int64_t workers : {1, 3}) {
        config.loader.workers = workers;
        const std::string folder = work / (std::to_string(threads) + "-" + std::to_string(workers));
        train(config, folder, {.threads = threads});
        SCOPED_TRACE(folder);
        expect_same_run(folder, work / "one");
      }
  }
}

TEST(ResumeRun, WhateverTheRunKeeps) {
  struct Case {
    const char* name;
    std::function<void(TrainConfig&)> make;
  };
  const WorkFolder work;
  train(tiny_config(10), work / "teacher");
  const Case cases[] = {
      {"sgd", [](TrainConfig& c) { c.optim.name = "sgd", c.optim.nesterov = true; }},
      {"lamb", [](TrainConfig& c) { c.optim.name = "lamb"; }},
      {"lion with half moments",
       [](TrainConfig& c) { c.optim.name = "lion", c.optim.moment_dtype = MomentDType::kBF16; }},
      {"lora", [](TrainConfig& c) { c.lora.rank = 2, c.train.dtype = ComputeType::kBF16; }},
      {"distilled",
       [&](TrainConfig& c) {
         c.distill = {DistillKind::kSoft, work / "teacher/best", 0.5, 2};
       }},
      {"sigmoid, balanced, repeated",
       [](TrainConfig& c) {
         c.train.loss = TrainLoss::kBceMean;
         c.loader.balanced = c.loader.class_weights = true;
         c.augment.repeats = 2;
       }},
      {"recomputed", [](TrainConfig& c) { c.train.recompute = Recompute::kBlock; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TrainConfig config = full_config(8);
    c.make(config);
    const std::string whole = work / (std::string(c.name) + " whole"), cut = work / c.name;
    train(config, whole);
    train(config, cut, {.stop_after = 5});
    train(config, cut, {.resume = ResumeMode::kNewest});
    expect_same_run(cut, whole);
  }
}

// The tests above would pass if nothing depended on the seed.
TEST(ResumeRun, AnotherSeedIsAnotherRun) {
  const WorkFolder work;
  TrainConfig config = full_config(3);
  train(config, work / "a");
  config.train.seed = 1;
  train(config, work / "b");
  EXPECT_GT(differing(state_of(work / "a"), state_of(work / "b")).size(), 50u);
}

TEST(ResumeRun, AFinishedRunStaysAsItIs) {
  const WorkFolder work;
  const TrainConfig config = full_config(4);
  const Ran first = train(config, work / "run");
  const auto before = metrics_of(work / "run");
  const Ran again = train(config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(again.outcome.finished);
  EXPECT_TRUE(again.steps.empty());
  ASSERT_TRUE(again.outcome.last_eval);
  EXPECT_EQ(again.outcome.last_eval->loss, first.outcome.last_eval->loss);
  auto after = metrics_of(work / "run");
  EXPECT_EQ(std::count_if(after.begin(), after.end(),
                          [](const std::string& line) { return line.find("\"eval\"") != std::string::npos; }),
            std::count_if(before.begin(), before.end(), [](const std::string& line) {
              return line.find("\"eval\"") != std::string::npos;
            }));
}

TEST(ResumeRun, MoreStepsGoOnAndOtherSettingsAreRefused) {
  const WorkFolder work;
  TrainConfig config = tiny_config(3);
  train(config, work / "run");
  config.train.steps = 5;
  config.optim.lr = 0.001;
  const Ran more = train(config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(more.outcome.step, 5);
  EXPECT_TRUE(more.noted("train.steps"));
  EXPECT_TRUE(more.noted("optim.lr"));

  struct Change {
    const char* key;
    std::function<void(TrainConfig&)> make;
  };
  const Change changes[] = {
      {"train.seed", [](TrainConfig& c) { c.train.seed = 9; }},
      {"optim.weight_decay", [](TrainConfig& c) { c.optim.weight_decay = 0.1; }},
      {"train.batch", [](TrainConfig& c) { c.train.batch = 4; }},
      {"data.size", [](TrainConfig& c) { c.data.train = "synthetic:3x8x8x4x44"; }},
      {"model.width", [](TrainConfig& c) { c.model.fields.width = 32; }},
  };
  for (const Change& change : changes) {
    TrainConfig other = config;
    change.make(other);
    Ran ran;
    const Error error = train_error(ran, other, work / "run", {.resume = ResumeMode::kNewest});
    EXPECT_EQ(error.kind(), ErrorKind::kConfig) << change.key;
    EXPECT_NE(error.message().find(change.key), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace vitrail::testing
