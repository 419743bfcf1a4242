// Whole runs on several ranks, threads of the test, against one rank: losses, evaluations, files, failures.
#include <gtest/gtest.h>

#include "ranks/shared_run.h"

namespace vitrail::testing {
namespace {

TEST(TrainerRanks, LossesAndEvaluationsAreThoseOfOneRank) {
  const WorkFolder folder;
  const TrainConfig config = shared_config(6);
  const Ran one = train(config, folder / "one");
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const Ran many = train(config, folder / std::to_string(ranks), {.ranks = ranks});
    expect_same_run(many, one);
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
  const Ran first = train(config, folder / "a", {.ranks = 3}),
            second = train(config, folder / "b", {.ranks = 3});
  EXPECT_EQ(first.losses(), second.losses());
}

// Weights that GEMMs read in bf16 have masters in f32: with ZeRO a rank keeps those of its piece alone.
TEST(TrainerRanks, LowPrecisionFollowsOneRank) {
  const WorkFolder folder;
  TrainConfig config = shared_config(6);
  config.train.dtype = ComputeType::kBF16;
  const Ran one = train(config, folder / "one");
  for (const int64_t zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(zero);
    config.mesh.zero = zero;
    expect_near(train(config, folder / std::to_string(zero), {.ranks = 2}).losses(), one.losses(), 2e-3);
  }
}

// The files of a run are those of one rank, whatever part of the state each rank held.
TEST(TrainerRanks, TheModelIsAnOrdinaryOne) {
  const WorkFolder folder;
  TrainConfig config = shared_config(3);
  train(config, folder / "one");
  config.mesh.tp = 2, config.mesh.zero = 3;
  train(config, folder / "many", {.ranks = 4});
  const Tensors one = state_of(folder / "one"), many = state_of(folder / "many");
  ASSERT_EQ(one.size(), many.size());
  for (const auto& [name, values] : one) {
    if (name == kUpdateCounterState || name == kLossScaleState) {
      EXPECT_EQ(values, many.at(name)) << name;
      continue;
    }
    const std::vector<float> wanted = floats_of(one, name), found = floats_of(many, name);
    ASSERT_EQ(wanted.size(), found.size()) << name;
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 2e-4) << name << " " << i;
  }
}

TEST(TrainerRanks, AFailureOfOneRankIsEverybodys) {
  const WorkFolder folder;
  Ran ran;
  const TrainConfig config = shared_config(50);
  const Error error = train_error(ran, config, folder / "run",
                                  {.step =
                                       [](const TrainStatus& status) {
                                         if (status.step == 3)
                                           throw Error(ErrorKind::kNumerics, "on purpose");
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
