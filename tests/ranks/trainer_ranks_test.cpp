// Whole runs on several ranks, threads of the test, against one rank: losses, evaluations, files, stopping, and
// going on with another number of ranks.
#include <gtest/gtest.h>

#include "train/helpers/tiny_run.h"

namespace vitrail::testing {
namespace {

// Every setting that draws random numbers, with batches that 2, 3 and 4 ranks can share.
TrainConfig shared_config(int64_t steps) {
  TrainConfig config = full_config(steps);
  config.train.batch = 24;
  config.train.micro_batch = 0;
  config.train.eval_batch = 5;  // 40 images: the last batches are padded
  config.augment.mix_group = 2;
  return config;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted, double relative) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], relative * std::abs(wanted[i])) << "step " << i;
}

TEST(TrainerRanks, LossesAndEvaluationsAreThoseOfOneRank) {
  const WorkFolder folder;
  const TrainConfig config = shared_config(6);
  const Ran one = train(config, folder / "one");
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const Ran many = train(config, folder / std::to_string(ranks), {.ranks = ranks});
    expect_near(many.losses(), one.losses(), 1e-5);
    ASSERT_EQ(many.evals.size(), one.evals.size());
    for (size_t i = 0; i < one.evals.size(); ++i) {
      EXPECT_EQ(many.evals[i].count, one.evals[i].count);
      EXPECT_EQ(many.evals[i].top1, one.evals[i].top1);
      EXPECT_NEAR(many.evals[i].loss, one.evals[i].loss, 1e-5 * one.evals[i].loss);
    }
    EXPECT_TRUE(many.outcome.finished);
  }
}

TEST(TrainerRanks, TensorAndSequenceParallelRunsToo) {
  const WorkFolder folder;
  TrainConfig config = shared_config(5);
  const Ran one = train(config, folder / "one");
  config.mesh.tp = 2;
  expect_near(train(config, folder / "tp2", {.ranks = 2}).losses(), one.losses(), 1e-5);
  expect_near(train(config, folder / "dp2tp2", {.ranks = 4}).losses(), one.losses(), 1e-5);
  config.mesh.tp = 1, config.mesh.sp = 2;
  expect_near(train(config, folder / "sp2", {.ranks = 2}).losses(), one.losses(), 1e-5);
}

TEST(TrainerRanks, TheSameWorldTwiceGivesTheSameBits) {
  const WorkFolder folder;
  const TrainConfig config = shared_config(5);
  const Ran first = train(config, folder / "a", {.ranks = 3}), second = train(config, folder / "b", {.ranks = 3});
  EXPECT_EQ(first.losses(), second.losses());
}

TEST(TrainerRanks, GoesOnWithAnotherNumberOfRanks) {
  const WorkFolder folder;
  const TrainConfig config = shared_config(8);
  const Ran whole = train(config, folder / "whole");
  std::vector<double> losses;
  const std::pair<int, int64_t> parts[] = {{4, 2}, {2, 4}, {3, 6}, {1, 0}};
  ResumeMode resume = ResumeMode::kFresh;
  for (const auto& [ranks, until] : parts) {
    const Ran part = train(config, folder / "parts", {.resume = resume, .stop_after = until, .ranks = ranks});
    for (const double loss : part.losses()) losses.push_back(loss);
    resume = ResumeMode::kNewest;
  }
  expect_near(losses, whole.losses(), 1e-5);
}

TEST(TrainerRanks, AFailureOfOneRankIsEverybodys) {
  const WorkFolder folder;
  Ran ran;
  const TrainConfig config = shared_config(50);
  const Error error = train_error(ran, config, folder / "run",
                                  {.step =
                                       [](const TrainStatus& status) {
                                         if (status.step == 3) throw Error(ErrorKind::kNumerics, "on purpose");
                                       },
                                   .ranks = 3});
  EXPECT_EQ(error.kind(), ErrorKind::kNumerics);
  EXPECT_NE(std::string(error.what()).find("rank 0"), std::string::npos) << error.what();
}

TEST(TrainerRanks, MeshesThatDoNotFitAreRefusedWithTheNumbers) {
  MeshConfig config;
  config.tp = 3;
  try {
    resolved(config, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find("mesh.tp 3"), std::string::npos);
    EXPECT_NE(error.hint().find("mesh.dp=1 mesh.tp=4 mesh.sp=1"), std::string::npos) << error.hint();
  }
  EXPECT_THROW(require_divisible_heads(6, {{1, 4, 1}, 0}), Error);
  EXPECT_THROW(share_of(32, {{4, 1, 1}, 0}, 16, "a micro-batch"), Error);
}

}  // namespace
}  // namespace vitrail::testing
