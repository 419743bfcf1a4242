// Precision and recomputing over a hundred steps of a task that can be learnt.
#include <gtest/gtest.h>

#include "train/helpers/answers.h"
#include "train/helpers/seed_spread.h"

namespace vitrail::testing {
namespace {

TEST(Precision, LowPrecisionFollowsFloatForAHundredSteps) {
  const std::vector<double> wanted = losses_of(learnable_config(100));
  EXPECT_LT(wanted.back(), 0.4 * wanted.front());
  for (ComputeType dtype : {ComputeType::kBF16, ComputeType::kF16})
    for (bool low_residual : {false, true}) {
      TrainConfig config = learnable_config(100);
      config.train.dtype = dtype;
      config.train.low_residual = low_residual;
      config.loss_scale.initial = 1024;
      const std::vector<double> found = losses_of(config);
      EXPECT_NE(found, wanted);
      EXPECT_LE(worst_share(found, wanted), dtype == ComputeType::kBF16 ? 0.01 : 0.002)
          << enum_name(dtype) << (low_residual ? " residual too" : "");
    }
}

// The test runs on the reference backend, whose arithmetic depends on no hardware.
TEST(Precision, RoundedGemmsFollowFloat) {
  TrainConfig config = rounded_config(100);
  const SeedSpread seeds(config, {});
  for (const auto& [dtype, least] : {std::pair{ComputeType::kFp8, 1e-3}, {ComputeType::kTF32, 1e-7}}) {
    config.train.dtype = dtype;
    const std::vector<double> found = losses_of(config, {.ref = true});
    EXPECT_GT(worst_share(found, seeds.wanted()), least) << enum_name(dtype);
    seeds.expect_within(found, enum_name(dtype));
    const WorkFolder work;
    Ran ran;
    EXPECT_EQ(train_error(ran, config, work / "run").kind(), ErrorKind::kUsage) << "a processor has none";
  }
}

// With a residual stream in f32 the gradient of a norm comes in another type than the norm's input.
TEST(Precision, RootMeanSquareNormsTrainInEveryType) {
  TrainConfig config = tiny_config(3);
  set_model(config, "norm", [](VitConfig& m) { m.norm = NormKind::kRms; });
  const std::vector<double> wanted = losses_of(config);
  for (ComputeType dtype : {ComputeType::kBF16, ComputeType::kF16})
    for (bool low_residual : {false, true}) {
      config.train.dtype = dtype;
      config.train.low_residual = low_residual;
      EXPECT_LE(worst_share(losses_of(config), wanted), 0.02) << enum_name(dtype) << low_residual;
    }
}

TEST(Precision, TheAverageIsEvaluatedInTheRunsTypes) {
  for (ComputeType dtype : {ComputeType::kF32, ComputeType::kBF16, ComputeType::kF16})
    for (int64_t rank : {0, 2}) {  // adapters: most weights are frozen and have no average
      TrainConfig config = tiny_config(1);
      config.train.dtype = dtype;
      config.lora.rank = rank;
      const auto [weights, average] = first_answers(config, cpu_backend(), cpu_device(1));
      EXPECT_EQ(weights, average) << enum_name(dtype) << " adapters of rank " << rank;
    }
}

TEST(Precision, RecomputingChangesNoLoss) {
  for (ComputeType dtype : {ComputeType::kF32, ComputeType::kBF16}) {
    TrainConfig config = learnable_config(20);
    set_model(config, "depth", [](VitConfig& m) { m.depth = 3; });
    config.train.dropout = 0.1;
    config.train.drop_path = 0.3;
    config.train.dtype = dtype;
    const std::vector<double> kept = losses_of(config);
    for (const auto& [level, every] : {std::pair<Recompute, int64_t>{Recompute::kMlp, 1},
                                       {Recompute::kBlock, 1},
                                       {Recompute::kBlock, 2}}) {
      config.train.recompute = level;
      config.train.recompute_every = every;
      EXPECT_EQ(losses_of(config), kept) << enum_name(dtype) << " " << enum_name(level) << " " << every;
    }
  }
}

// Wrong gradients, updates, targets or image positions would not reach this loss.
TEST(Learning, ATinyViTLearnsMadeUpImages) {
  struct Recipe {
    const char* optimizer;
    double lr, accuracy;
  };
  for (const Recipe& recipe :
       {Recipe{"adamw", 0.005, 0.97}, {"sgd", 0.5, 0.9}, {"lamb", 0.02, 0.95}, {"lion", 0.002, 0.95}}) {
    const WorkFolder work;
    TrainConfig config = learnable_config(300);
    config.data.train = "synthetic:3x8x8x10x600";
    config.optim.name = recipe.optimizer;
    config.optim.lr = recipe.lr;
    config.optim.ema_decay = 0.9;
    config.schedule.warmup = 20;
    const Ran ran = train(config, work / "run");
    ASSERT_TRUE(ran.outcome.last_eval);
    EXPECT_EQ(ran.outcome.last_eval->count, 120);
    EXPECT_GE(ran.outcome.last_eval->top1(), recipe.accuracy) << recipe.optimizer;
  }
}

}  // namespace
}  // namespace vitrail::testing
