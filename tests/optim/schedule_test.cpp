#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "golden_json.h"

namespace vitrail {
namespace {

class ScheduleGolden : public testing::TestWithParam<golden::NamedRow> {};

TEST_P(ScheduleGolden, EveryStepAgreesWithTheLibrary) {
  const Json& row = GetParam().row;
  const auto config = golden::read_config<ScheduleConfig>(row.at("config"));
  validate(config);
  const double base = row.at("base_lr");
  const auto wanted = row.at("lrs").get<std::vector<double>>();
  for (size_t step = 0; step < wanted.size(); ++step)
    EXPECT_NEAR(lr_at(config, base, static_cast<int64_t>(step), row.at("total")), wanted[step], 1e-12 * base)
        << "step " << step;
}

INSTANTIATE_TEST_SUITE_P(Curves, ScheduleGolden, testing::ValuesIn(golden::rows("schedules.json")),
                         golden::row_name);

TEST(Schedule, CountsFromZeroUnlessTold) {
  ScheduleConfig config{.kind = ScheduleKind::kCosine, .warmup = 4};
  EXPECT_EQ(lr_at(config, 0.1, 0, 100), 0) << "the first update of a warm-up from 0 moves nothing";
  EXPECT_EQ(lr_at(config, 0.1, 4, 100), 0.1);
  EXPECT_GT(lr_at(config, 0.1, 99, 100), 0);
  config.count_from_one = true;
  EXPECT_DOUBLE_EQ(lr_at(config, 0.1, 0, 100), 0.025);
  EXPECT_EQ(lr_at(config, 0.1, 99, 100), 0) << "the last update takes the curve's end";
}

TEST(Schedule, LengthsBelowOneAreSharesOfTheRun) {
  const ScheduleConfig share{.kind = ScheduleKind::kLinear, .warmup = 0.1};
  const ScheduleConfig steps{.kind = ScheduleKind::kLinear, .warmup = 20};
  for (int64_t step : {0, 1, 19, 20, 21, 150, 199})
    EXPECT_EQ(lr_at(share, 1, step, 200), lr_at(steps, 1, step, 200)) << step;
}

TEST(Schedule, SharesAreRoundedToTheNearestUpdate) {
  const ScheduleConfig share{.kind = ScheduleKind::kLinear, .warmup = 0.1};
  for (const auto& [total, updates] : {std::pair<int64_t, double>{204, 20}, {206, 21}})
    for (int64_t step : {5, 20, 21, 100})
      EXPECT_EQ(lr_at(share, 1, step, total),
                lr_at({.kind = ScheduleKind::kLinear, .warmup = updates}, 1, step, total))
          << step << " of " << total;
}

TEST(Schedule, StepsDoNotFallBelowTheFloor) {
  const ScheduleConfig config{.kind = ScheduleKind::kStep, .min_lr = 0.05, .every = 10};
  EXPECT_DOUBLE_EQ(lr_at(config, 1, 9, 100), 1);
  EXPECT_DOUBLE_EQ(lr_at(config, 1, 10, 100), 0.1);
  EXPECT_DOUBLE_EQ(lr_at(config, 1, 20, 100), 0.05);
  EXPECT_DOUBLE_EQ(lr_at(config, 1, 99, 100), 0.05);
}

TEST(Schedule, IsFiniteAndNotNegativeAtTheEdges) {
  for (size_t kind = 0; kind < std::size(EnumNames<ScheduleKind>::names); ++kind)
    for (int64_t total : {1, 2, 3, 10})
      for (double warmup : {0.0, 0.5, 1.0, 50.0})
        for (int64_t step = 0; step <= total + 2; ++step) {
          ScheduleConfig config{.kind = static_cast<ScheduleKind>(kind), .warmup = warmup, .every = 0.01};
          if (config.kind == ScheduleKind::kOneCycle) config.warmup = 0;
          const double lr = lr_at(config, 0.5, step, total);
          EXPECT_TRUE(lr >= 0 && lr <= 0.5)
              << enum_name(config.kind) << " " << total << " " << step << ": " << lr;
        }
}

// A run of one update has neither a rise nor a fall: it takes the rate of the peak.
TEST(Schedule, ACycleOfOneUpdateTakesThePeaksRate) {
  const ScheduleConfig config{.kind = ScheduleKind::kOneCycle};
  EXPECT_EQ(lr_at(config, 0.5, 0, 1), 0.5);
  EXPECT_LT(lr_at(config, 0.5, 0, 10), 0.5);
  EXPECT_LT(lr_at(config, 0.5, 9, 10), 0.5);
}

TEST(Schedule, RefusesWhatBreaksARule) {
  const ScheduleConfig wrong[] = {
      {.warmup = -1},
      {.warmup_lr = -1e-3},
      {.min_lr = NAN},
      {.kind = ScheduleKind::kPolynomial, .power = 0},
      {.kind = ScheduleKind::kStep},
      {.kind = ScheduleKind::kStep, .milestones = {0.5, -3}},
      {.kind = ScheduleKind::kStep, .every = 3, .gamma = 0},
      {.kind = ScheduleKind::kStep, .every = 3, .gamma = 1.5},
      {.kind = ScheduleKind::kOneCycle, .warmup = 5},
      {.kind = ScheduleKind::kOneCycle, .peak_at = 1},
      {.kind = ScheduleKind::kOneCycle, .start_divisor = 0.5},
  };
  for (size_t i = 0; i < std::size(wrong); ++i) EXPECT_THROW(validate(wrong[i]), Error) << "row " << i;
  EXPECT_NO_THROW(validate(ScheduleConfig{}));
}

// A share must be below 1: a length of 1 is one update, however long the run is.
TEST(Schedule, ALengthOfOneIsOneUpdate) {
  const ScheduleConfig config{.kind = ScheduleKind::kLinear, .warmup = 1};
  EXPECT_EQ(lr_at(config, 1, 0, 101), 0);
  for (int64_t step : {1, 26, 51, 101})
    EXPECT_DOUBLE_EQ(lr_at(config, 1, step, 101), 1 - static_cast<double>(step - 1) / 100) << step;
  const ScheduleConfig falls{.kind = ScheduleKind::kStep, .every = 1, .gamma = 0.5};
  for (int64_t step : {0, 1, 2, 5}) EXPECT_DOUBLE_EQ(lr_at(falls, 1, step, 100), std::pow(0.5, step)) << step;
}

// DeepSpeed moves a schedule after the update: the first two updates take its start.
TEST(Schedule, DeepSpeedsKindsAreItsOwnUpdateByUpdate) {
  struct Row {
    ScheduleConfig config;
    double base;
    std::vector<std::pair<int64_t, double>> rates;
  };
  const Row rows[] = {
      {{.kind = ScheduleKind::kWarmup, .warmup = 10, .warmup_shape = WarmupShape::kLog},
       1e-3,
       {{0, 0}, {1, 0}, {2, 1e-3 * std::log(2) / std::log(10)}, {10, 1e-3}, {11, 1e-3}, {500, 1e-3}}},
      {{.kind = ScheduleKind::kWarmupDecay, .warmup = 4, .warmup_lr = 0.1, .length = 10, .min_lr = 0.1},
       1.1,
       {{0, 0.1},
        {1, 0.1},
        {2, 0.35},
        {4, 0.85},
        {5, 1.1},
        {6, 0.1 + 5.0 / 6},
        {10, 0.1 + 1.0 / 6},
        {11, 0.1},
        {20, 0.1}}},
      {{.kind = ScheduleKind::kWarmupCosine, .warmup = 2, .warmup_lr = 0.2, .length = 6, .min_lr = 0.2},
       2,
       {{0, 0}, {1, 0.2}, {2, 1.1}, {3, 0.2 + 0.9 * (1 + std::sqrt(0.5))}, {4, 1.1}, {6, 0.2}, {9, 0.2}}},
      {{.kind = ScheduleKind::kWarmup, .warmup = 1}, 1, {{0, 0}, {1, 0}, {2, 0.5}, {3, 1}}}};
  for (const Row& row : rows) {
    validate(row.config);
    for (const auto& [step, rate] : row.rates)
      EXPECT_NEAR(lr_at(row.config, row.base, step, 1000), rate, 1e-12)
          << enum_name(row.config.kind) << " " << step;
  }
}

TEST(Schedule, ACurveMayEndBeforeTheRun) {
  const ScheduleConfig config{.kind = ScheduleKind::kLinear, .length = 10};
  EXPECT_NEAR(lr_at(config, 1, 5, 100), 0.5, 1e-12);
  EXPECT_EQ(lr_at(config, 1, 50, 100), 0);
}

}  // namespace
}  // namespace vitrail
