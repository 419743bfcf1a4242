#include "optim/optim_config.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vitrail {
namespace {

TEST(OptimConfig, ResolvesToTheOptimizersUsualSettings) {
  struct Row {
    const char* name;
    DecayStyle decay;
    double beta2, eps;
  };
  const Row rows[] = {{"sgd", DecayStyle::kCoupled, 0, 0},
                      {"adam", DecayStyle::kCoupled, 0.999, 1e-8},
                      {"adamw", DecayStyle::kDecoupled, 0.999, 1e-8},
                      {"lamb", DecayStyle::kCoupled, 0.999, 1e-6},
                      {"lion", DecayStyle::kDecoupled, 0.99, 0}};
  for (const Row& row : rows) {
    const OptimConfig c = resolved({.name = row.name});
    EXPECT_EQ(c.decay, row.decay) << row.name;
    EXPECT_EQ(c.beta1, row.beta2 > 0 ? 0.9 : 0) << row.name;
    EXPECT_EQ(c.beta2, row.beta2) << row.name;
    EXPECT_EQ(c.eps, row.eps) << row.name;
  }
  EXPECT_EQ(resolved({.name = "lion", .beta2 = 0.5}).beta2, 0.5);
  EXPECT_EQ(resolved({.name = "sgd", .decay = DecayStyle::kSchedule}).decay, DecayStyle::kSchedule);
}

// Only numbers below 0 stand for the defaults.
TEST(OptimConfig, AZeroIsASettingToo) {
  const OptimConfig c = resolved({.name = "adam", .beta1 = 0, .beta2 = 0, .eps = 0});
  EXPECT_EQ(c.beta1, 0);
  EXPECT_EQ(c.beta2, 0);
  EXPECT_EQ(c.eps, 0);
}

TEST(OptimConfig, RefusesWhatBreaksARule) {
  const OptimConfig wrong[] = {{.name = "adamv"},
                               {.lr = 0},
                               {.lr = NAN},
                               {.momentum = 1},
                               {.beta1 = 1},
                               {.beta2 = 1.5},
                               {.eps = INFINITY},
                               {.weight_decay = -0.1},
                               {.clip_norm = -1},
                               {.ema_decay = 1},
                               {.name = "sgd", .momentum = 0, .nesterov = true},
                               {.name = "lamb", .decay = DecayStyle::kDecoupled}};
  for (size_t i = 0; i < std::size(wrong); ++i) EXPECT_THROW(validate(wrong[i]), Error) << "row " << i;
  EXPECT_NO_THROW(validate(OptimConfig{}));
}

TEST(OptimConfig, NamesTheNearestOptimizer) {
  try {
    validate(OptimConfig{.name = "adamv"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find("adam"), std::string::npos) << error.what();
  }
}

TEST(LossScale, AutoIsDynamicInHalfPrecisionOnly) {
  EXPECT_TRUE(loss_scale_rule({}, true).dynamic);
  EXPECT_EQ(loss_scale_rule({}, true).initial, 65536);
  EXPECT_FALSE(loss_scale_rule({}, false).dynamic);
  EXPECT_EQ(loss_scale_rule({}, false).initial, 1);
  const LossScaleRule fixed = loss_scale_rule({.mode = LossScaleMode::kFixed, .initial = 128}, false);
  EXPECT_FALSE(fixed.dynamic);
  EXPECT_EQ(fixed.initial, 128);
  EXPECT_FALSE(loss_scale_rule({.mode = LossScaleMode::kOff}, true).dynamic);
}

TEST(LossScale, RefusesWhatBreaksARule) {
  for (const LossScaleConfig& wrong : {LossScaleConfig{.min = 0}, LossScaleConfig{.min = 8, .max = 4},
                                       LossScaleConfig{.initial = 1e9}, LossScaleConfig{.window = 0}})
    EXPECT_THROW(validate(wrong), Error);
}

}  // namespace
}  // namespace vitrail
