// Settings of the optimizer, the schedule and the parameter groups at the ends of their ranges; what is said
// of those beyond.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "optim/optim_config.h"
#include "optim/optimizer.h"
#include "optim/param_groups.h"
#include "optim/schedule.h"

namespace vitrail {
namespace {

// The message of a refusal; empty where the settings are accepted.
std::string refused_with(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.message();
  }
  return "";
}

template <typename Config>
struct LimitRow {
  Config config;
  const char* says;  // empty: accepted
};

TEST(SettingLimits, OfTheOptimizer) {
  const LimitRow<OptimConfig> rows[] = {
      {{.lr = 1e-300}, ""},
      {{.lr = -1}, "optim.lr is -1; expected a number above 0"},
      {{.lr = INFINITY}, "optim.lr is inf"},
      {{.momentum = 0}, ""},
      {{.momentum = -0.1}, "optim.momentum is -0.1; expected a number from 0 to below 1"},
      {{.beta1 = 0, .beta2 = 0}, ""},
      {{.beta1 = 1}, "optim.beta1 is 1; expected a number from 0 to below 1"},
      {{.beta2 = 1}, "optim.beta2 is 1"},
      {{.ema_decay = 0.999999}, ""},
      {{.ema_decay = -0.1}, "optim.ema_decay is -0.1"},
      {{.eps = NAN}, "optim.eps is nan; expected a number"},
      {{.weight_decay = NAN}, "optim.weight_decay is nan; expected a number from 0"},
      {{.clip_norm = INFINITY}, "optim.clip_norm is inf; expected a number from 0"},
      {{.trust_min = -1}, "optim.trust_min is -1; expected a number from 0"},
      {{.trust_min = 2, .trust_max = 0}, ""},
      {{.trust_min = 2, .trust_max = 2}, ""},
      {{.trust_min = 2, .trust_max = 1.5},
       "optim.trust_max is 1.5; expected 0, or a number not below optim.trust_min"},
      {{.trust_max = INFINITY}, "optim.trust_max is inf"},
      {{.name = "sgd", .momentum = 0, .nesterov = true}, "optim.nesterov is true but optim.momentum is 0"},
      {{.name = "sgd", .momentum = 0.1, .nesterov = true}, ""},
      {{.name = "lamb", .decay = DecayStyle::kCoupled}, ""},
      {{.name = "lamb", .decay = DecayStyle::kDecoupled},
       "optim.decay is decoupled; expected usual: lamb has its own"},
      {{.name = "adamw", .decay = DecayStyle::kCoupled}, ""}};
  for (const auto& row : rows) {
    const std::string says = refused_with([&] { validate(row.config); });
    EXPECT_NE(says.find(row.says), std::string::npos) << row.says << ": " << says;
    EXPECT_EQ(says.empty(), *row.says == '\0') << says;
  }
  EXPECT_STREQ(optimizer_names_text(), "sgd, adam, adamw, lamb or lion");
  EXPECT_EQ(refused_with([] { validate(OptimConfig{.name = "adamv"}); }),
            "optim.name is \"adamv\"; expected one of sgd, adam, adamw, lamb, lion");
}

TEST(SettingLimits, OfTheLossScale) {
  const LimitRow<LossScaleConfig> rows[] = {
      {{.initial = 1, .min = 1, .max = 1}, ""},
      {{.min = 0}, "loss_scale.min is 0; expected a number above 0"},
      {{.initial = 8, .min = 8, .max = 7}, "loss_scale.max is 7; expected a number not below min"},
      {{.max = INFINITY}, "loss_scale.max is inf"},
      {{.initial = 0.5}, "loss_scale.initial is 0.5; expected a number from min to max"},
      {{.initial = 16777217}, "loss_scale.initial is 1.67772e+07"},
      {{.initial = 16777216}, ""},
      {{.window = 1, .hysteresis = 1}, ""},
      {{.window = 0}, "loss_scale.window is 0; expected at least 1"},
      {{.hysteresis = 0}, "loss_scale.hysteresis is 0; expected at least 1"}};
  for (const auto& row : rows) {
    const std::string says = refused_with([&] { validate(row.config); });
    EXPECT_NE(says.find(row.says), std::string::npos) << row.says << ": " << says;
    EXPECT_EQ(says.empty(), *row.says == '\0') << says;
  }
  const LossScaleRule rule = loss_scale_rule({.mode = LossScaleMode::kDynamic,
                                              .initial = 64,
                                              .window = 7,
                                              .hysteresis = 3,
                                              .consecutive = true,
                                              .min = 2,
                                              .max = 128},
                                             false);
  EXPECT_TRUE(rule.dynamic);
  EXPECT_EQ(rule.initial, 64);
  EXPECT_EQ(rule.min, 2);
  EXPECT_EQ(rule.max, 128);
  EXPECT_EQ(rule.window, 7);
  EXPECT_EQ(rule.hysteresis, 3);
  EXPECT_TRUE(rule.consecutive);
}

TEST(SettingLimits, OfTheSchedule) {
  using K = ScheduleKind;
  const LimitRow<ScheduleConfig> rows[] = {
      {{.warmup = 0}, ""},
      {{.warmup = INFINITY}, "schedule.warmup is inf"},
      {{.warmup_lr = -1}, "schedule.warmup_lr is -1; expected a number from 0"},
      {{.length = -1}, "schedule.length is -1; expected a number of updates"},
      {{.min_lr = -1}, "schedule.min_lr is -1"},
      {{.power = 0}, "schedule.power is 0; expected a number above 0"},
      {{.every = -1}, "schedule.every is -1"},
      {{.gamma = 1}, ""},
      {{.gamma = 0}, "schedule.gamma is 0; expected a number above 0, at most 1"},
      {{.peak_at = 0}, "schedule.peak_at is 0; expected a number between 0 and 1"},
      {{.peak_at = 0.999}, ""},
      {{.start_divisor = 1, .end_divisor = 1}, ""},
      {{.start_divisor = 0.9}, "schedule.start_divisor is 0.9; expected a number from 1"},
      {{.end_divisor = 0.9}, "schedule.end_divisor is 0.9; expected a number from 1"},
      {{.milestones = {0}}, "schedule.milestones is 0; expected numbers above 0"},
      {{.kind = K::kStep, .milestones = {3}}, ""},
      {{.kind = K::kStep, .every = 0.1}, ""},
      {{.kind = K::kStep}, "schedule.kind is step, without schedule.milestones"},
      {{.kind = K::kOneCycle, .warmup = 0.5}, "schedule.warmup is 0.5 and schedule.kind is one_cycle"}};
  for (const auto& row : rows) {
    const std::string says = refused_with([&] { validate(row.config); });
    EXPECT_NE(says.find(row.says), std::string::npos) << row.says << ": " << says;
    EXPECT_EQ(says.empty(), *row.says == '\0') << says;
  }
}

TEST(SettingLimits, RatesAtTheirTurningPoints) {
  using K = ScheduleKind;
  const struct {
    ScheduleConfig config;
    int64_t step, total;
    double rate;  // of a base of 1
  } rows[] = {{{.kind = K::kStep, .milestones = {10, 0.5}, .gamma = 0.5}, 9, 100, 1},
              {{.kind = K::kStep, .milestones = {10, 0.5}, .gamma = 0.5}, 10, 100, 0.5},
              {{.kind = K::kStep, .milestones = {10, 0.5}, .gamma = 0.5}, 50, 100, 0.25},
              {{.kind = K::kCosine, .warmup = 10, .warmup_lr = 0.2}, 5, 100, 0.6},
              {{.kind = K::kCosine, .warmup = 10}, 55, 100, 0.5},
              {{.kind = K::kCosine, .warmup = 20, .warmup_inside = true}, 50, 100, 0.5},
              {{.kind = K::kCosine, .min_lr = 0.2}, 50, 100, 0.6},
              {{.kind = K::kLinear, .min_lr = 0.2}, 25, 100, 0.8},
              {{.kind = K::kPolynomial, .power = 2}, 50, 100, 0.25},
              {{.kind = K::kPolynomial, .min_lr = 0.1, .power = 2}, 50, 100, 0.325},
              {{.kind = K::kConstant, .warmup = 4, .warmup_shape = WarmupShape::kLog}, 1, 100, 0.5},
              {{.kind = K::kConstant}, 99, 100, 1},
              {{.kind = K::kOneCycle, .peak_at = 0.5, .start_divisor = 4, .end_divisor = 10}, 0, 100, 0.25},
              {{.kind = K::kOneCycle, .peak_at = 0.5, .start_divisor = 4, .end_divisor = 10}, 49, 100, 1},
              {{.kind = K::kOneCycle, .peak_at = 0.5, .start_divisor = 4, .end_divisor = 10}, 99, 100, 0.025},
              {{.kind = K::kLinear, .length = 0.5}, 25, 100, 0.5}};
  for (const auto& row : rows)
    EXPECT_NEAR(lr_at(row.config, 1, row.step, row.total), row.rate, 1e-12)
        << enum_name(row.config.kind) << " " << row.step;
}

TEST(SettingLimits, OfTheParameterGroups) {
  const LimitRow<ParamGroupConfig> rows[] = {
      {{.layer_decay = 1}, ""},
      {{.layer_decay = 1e-9}, ""},
      {{.layer_decay = 0}, "params.layer_decay is 0; expected a number above 0, at most 1"},
      {{.layer_decay = 1.001}, "params.layer_decay is 1.001"},
      {{.freeze = {"head.*", "x"}, .linear_probe = true},
       "params.linear_probe is true and params.freeze has 2 patterns; expected one of the two"},
      {{.freeze = {"!"}}, "params.freeze has the empty pattern \"!\"; expected a name, or !* for none"},
      {{.freeze = {"***"}}, "params.freeze leaves every parameter as it is: nothing is left to train"}};
  for (const auto& row : rows) {
    const std::string says = refused_with([&] { validate(row.config); });
    EXPECT_NE(says.find(row.says), std::string::npos) << row.says << ": " << says;
    EXPECT_EQ(says.empty(), *row.says == '\0') << says;
  }
  const std::vector<NamedParam> one = {{"head.weight", {DType::kF32, {{'K', 2}, {'D', 2}}}}};
  EXPECT_EQ(refused_with([&] { group_params(one, {.freeze = {"haed.*"}}, 0); }),
            "params.freeze has \"haed.*\", which fits none of the 1 parameters (such as head.weight)");
  EXPECT_EQ(refused_with([&] { group_params(one, {.freeze = {"head.*"}}, 0); }),
            "params.freeze fits all 1 parameters: nothing is left to train");
}

TEST(SettingLimits, LayersOfParameters) {
  const std::pair<const char*, int64_t> rows[] = {
      {"cls_token", 0},      {"dist_token", 0},          {"reg_token", 0},       {"pos_embed", 0},
      {"patch_embed.x", 0},  {"blocks.0.norm1.bias", 1}, {"blocks.11.mlp", 12},  {"norm.weight", 12},
      {"norm_pre.bias", 12}, {"head.weight", 13},        {"head_dist.bias", 13}, {"attn_pool.q", 13}};
  for (const auto& [name, layer] : rows) EXPECT_EQ(layer_of(name, 12), layer) << name;
}

}  // namespace
}  // namespace vitrail
