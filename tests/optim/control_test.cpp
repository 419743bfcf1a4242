// What decides about a step: clipping, skipping, the loss scale; and that a skipped step changes nothing.
#include "ops/update/control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "optim/optimizer.h"
#include "run_program.h"

namespace vitrail {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(StepControl, ClipsByTheNormWithTheLossScaleTakenOut) {
  struct Row {
    double max_norm, square_sum, loss_scale, norm, factor;
  };
  const Row rows[] = {{0, 25, 1, 5, 1},
                      {10, 25, 1, 5, 1},
                      {1, 25, 1, 5, 1 / (5 + 1e-6)},
                      {1, 25 * 64, 8, 5, 1 / (5 + 1e-6) / 8},
                      {0, 25 * 64, 8, 5, 1.0 / 8},
                      {1, 0, 1, 0, 1}};
  for (const Row& row : rows) {
    const StepControlOp op(row.max_norm, {});
    const double hyper[] = {0.5, 2, 0.9, 0};
    double scale = row.loss_scale, counters[kUpdateCounters] = {};
    const StepValues values = op.decide(row.square_sum, hyper, &scale, counters);
    EXPECT_EQ(values.skip, 0);
    EXPECT_DOUBLE_EQ(values.grad_norm, row.norm);
    EXPECT_DOUBLE_EQ(values.grad_factor, row.factor);
    EXPECT_EQ(values.lr, 0.5);
    EXPECT_EQ(values.decay, 2);
    EXPECT_EQ(values.step, 1);
    EXPECT_EQ(scale, row.loss_scale) << "a fixed scale stays";
  }
}

TEST(StepControl, DynamicScaleHalvesOnOverflowAndDoublesAfterTheWindow) {
  const StepControlOp op(0, {.dynamic = true, .initial = 8, .min = 2, .max = 16, .window = 2});
  const double hyper[kHyperCount] = {};
  double scale = 8, counters[kUpdateCounters] = {};
  struct Row {
    double square_sum, scale, step, applied, skipped, in_a_row;
  };
  const Row rows[] = {{1, 8, 1, 1, 0, 0},    {1, 16, 2, 2, 0, 0},   {1, 16, 3, 3, 0, 0},
                      {1, 16, 4, 4, 0, 0},   {kInf, 8, 4, 4, 1, 1}, {kNan, 4, 4, 4, 2, 2},
                      {kInf, 2, 4, 4, 3, 3}, {kInf, 2, 4, 4, 4, 4}, {1, 2, 5, 5, 4, 0},
                      {kInf, 2, 5, 5, 5, 1}, {1, 2, 6, 6, 5, 0},    {1, 4, 7, 7, 5, 0}};
  for (size_t i = 0; i < std::size(rows); ++i) {
    SCOPED_TRACE(i);
    const StepValues values = op.decide(rows[i].square_sum, hyper, &scale, counters);
    EXPECT_EQ(values.skip, std::isfinite(rows[i].square_sum) ? 0 : 1);
    EXPECT_EQ(values.step, rows[i].step);
    EXPECT_EQ(scale, rows[i].scale);
    EXPECT_EQ(counters[kAppliedUpdates], rows[i].applied);
    EXPECT_EQ(counters[kSkippedUpdates], rows[i].skipped);
    EXPECT_EQ(counters[kSkippedInARow], rows[i].in_a_row);
  }
}

// Every doubling needs a whole window of its own, and an overflow begins one anew.
TEST(StepControl, DynamicScaleDoublesOnceAWindow) {
  const StepControlOp op(0, {.dynamic = true, .initial = 8, .min = 1, .max = 1024, .window = 3});
  const double hyper[kHyperCount] = {};
  double scale = 8, counters[kUpdateCounters] = {};
  struct Row {
    bool good;
    double scale, good_updates;
  };
  const Row rows[] = {{true, 8, 1},  {true, 8, 2},  {true, 16, 0},  {true, 16, 1}, {true, 16, 2},
                      {true, 32, 0}, {true, 32, 1}, {false, 16, 0}, {true, 16, 1}, {true, 16, 2},
                      {false, 8, 0}, {true, 8, 1},  {true, 8, 2},   {true, 16, 0}, {true, 16, 1}};
  for (size_t i = 0; i < std::size(rows); ++i) {
    SCOPED_TRACE(i);
    op.decide(rows[i].good ? 1 : kInf, hyper, &scale, counters);
    EXPECT_EQ(scale, rows[i].scale);
    EXPECT_EQ(counters[kGoodUpdates], rows[i].good_updates);
  }
}

// The third overflow halves it: of all since it last doubled, or of those in a row.
TEST(StepControl, HysteresisPassesOverOverflowsBeforeTheScaleHalves) {
  for (const bool consecutive : {false, true}) {
    const StepControlOp op(0, {.dynamic = true,
                               .initial = 8,
                               .min = 1,
                               .max = 1024,
                               .window = 2,
                               .hysteresis = 3,
                               .consecutive = consecutive});
    ASSERT_TRUE(op.counts_overflows());
    const double hyper[kHyperCount] = {};
    double scale = 8, passed = 0, counters[kUpdateCounters] = {};
    struct Row {
      bool good;
      double scale, in_a_row;  // where all count, and where only those in a row do
    };
    const Row rows[] = {{false, 8, 8}, {true, 8, 8},  {false, 8, 8}, {false, 4, 8}, {false, 2, 4},
                        {true, 2, 4},  {true, 4, 8},  {false, 4, 8}, {false, 4, 8}, {false, 2, 4},
                        {true, 2, 4},  {false, 1, 4}, {false, 1, 4}, {false, 1, 2}};
    for (size_t i = 0; i < std::size(rows); ++i) {
      SCOPED_TRACE(strf("%d %zu", consecutive, i));
      op.decide(rows[i].good ? 1 : kInf, hyper, &scale, counters, &passed);
      EXPECT_EQ(scale, consecutive ? rows[i].in_a_row : rows[i].scale);
    }
  }
}

TEST(StepControl, AHysteresisOfTwoPassesOverOne) {
  const StepControlOp op(0, {.dynamic = true, .initial = 8, .hysteresis = 2});
  ASSERT_TRUE(op.counts_overflows());
  const double hyper[kHyperCount] = {};
  double scale = 8, passed = 0, counters[kUpdateCounters] = {};
  op.decide(kInf, hyper, &scale, counters, &passed);
  EXPECT_EQ(scale, 8);
  op.decide(kInf, hyper, &scale, counters, &passed);
  EXPECT_EQ(scale, 4);
}

// A fixed scale counts updates like the others and keeps its size whatever overflows.
TEST(StepControl, AFixedScaleIsTakenOutAndNeverChanged) {
  const StepControlOp op(0, {.dynamic = false, .initial = 4, .min = 1, .max = 1024, .window = 1});
  const double hyper[kHyperCount] = {};
  double scale = 4, counters[kUpdateCounters] = {};
  for (const double square_sum : {16.0, kInf, 16.0, 16.0}) {
    const StepValues values = op.decide(square_sum, hyper, &scale, counters);
    EXPECT_EQ(scale, 4);
    EXPECT_EQ(values.grad_factor, 0.25);
    EXPECT_EQ(values.grad_norm, std::sqrt(square_sum) / 4);
  }
  EXPECT_EQ(counters[kAppliedUpdates], 3);
  EXPECT_EQ(counters[kSkippedUpdates], 1);
}

TEST(StepValues, ReadGivesWhatWriteWrote) {
  double control[kControlCount];
  StepValues{1, 2, 3, 4, 5, 6}.write(control);
  const StepValues found = StepValues::read(control);
  EXPECT_EQ(found.skip, 1);
  EXPECT_EQ(found.grad_factor, 2);
  EXPECT_EQ(found.lr, 3);
  EXPECT_EQ(found.decay, 4);
  EXPECT_EQ(found.step, 5);
  EXPECT_EQ(found.grad_norm, 6);
}

class SkippedStep : public testing::TestWithParam<std::tuple<std::string, DType, double>> {};

TEST_P(SkippedStep, ChangesNothingButTheGradientSums) {
  const auto [name, dtype, poison] = GetParam();
  const std::vector<TrainedParam> params = {{"a.weight", {dtype, {{'O', 2}, {'D', 3}}}, 1, 0.1},
                                            {"b.bias", {dtype, {{'O', 2}}}}};
  Builder builder;
  record_update(builder, params,
                {.name = name, .lr = 0.1, .moment_dtype = MomentDType::kBF16, .ema_decay = 0.5});
  ProgramRunner runner(builder.finish());
  runner.set(kLossScaleState, {1});
  runner.set("hyper", {0.1, 1, 0.5, 0});
  const auto gradients = [&](double last) {
    runner.set("grad/a.weight", {1, -2, 3, -4, 5, 0.3});
    runner.set("grad/b.bias", {0.7, last});
  };
  runner.set("a.weight", {0.1, 0.2, 0.3, 0.4, 0.5, 0.6});
  gradients(-0.7);
  runner.run();
  std::map<std::string, std::vector<double>> before;
  for (const std::string& value : runner.persistent()) before[value] = runner.get(value);
  EXPECT_NE(before["a.weight"][0], 0.1) << "the first step changes weights";
  gradients(poison);
  runner.run();
  EXPECT_EQ(runner.get("control")[0], 1);
  EXPECT_EQ(runner.get(kUpdateCounterState), (std::vector<double>{0, 1, 1, 1}));
  for (const auto& [value, old] : before) {
    if (value == kUpdateCounterState) continue;
    EXPECT_EQ(runner.get(value), old) << value;
  }
  EXPECT_EQ(runner.get("grad/b.bias"), (std::vector<double>{0, 0}));
  gradients(-0.7);
  runner.run();
  EXPECT_EQ(runner.get("control")[4], 2) << "only applied updates count";
  EXPECT_NE(runner.get("a.weight"), before["a.weight"]);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SkippedStep,
                         testing::Combine(testing::ValuesIn(optimizer_names()),
                                          testing::Values(DType::kF64, DType::kF32),
                                          testing::Values(kNan, kInf, -kInf)));

TEST(SquareSum, AddsUpEveryInput) {
  const auto op = std::make_shared<SquareSumOp>();
  Builder builder;
  const int64_t many = 3 * kSquareSumChunk + 5;
  const ValueId a = builder.state("a", {DType::kF32, {{'D', many}}}, Category::kGradients);
  const ValueId b = builder.state("b", {DType::kF64, {{'K', 2}}}, Category::kGradients);
  builder.output("sum", builder.add(op, {a, b}, "sum"));
  ProgramRunner runner(builder.finish());
  runner.set("a", std::vector<double>(static_cast<size_t>(many), -0.5));
  runner.set("b", {3, 4});
  runner.run();
  EXPECT_DOUBLE_EQ(runner.get("sum")[0], 25 + 0.25 * static_cast<double>(many));
}

// A parameter that is all zero still learns, and one without gradient only decays.
// The loss is w^2 / 2, so its gradient is w.
TEST(Optimizers, EachFindsItsWayDown) {
  for (const std::string& name : optimizer_names()) {
    Builder builder;
    record_update(builder, {{"w", {DType::kF64, {{'D', 2}}}, 1, 0}}, {.name = name, .lr = 0.01});
    ProgramRunner runner(builder.finish());
    runner.set(kLossScaleState, {1});
    runner.set("hyper", {0.01, 1, 0, 0});
    runner.set("w", {1, -0.5});
    for (int step = 0; step < 30; ++step) {
      runner.set("grad/w", runner.get("w"));
      runner.run();
    }
    EXPECT_LT(std::abs(runner.get("w")[0]), 0.8) << name;
    EXPECT_LT(std::abs(runner.get("w")[1]), 0.4) << name;
  }
}

TEST(Lamb, TakesRatioOneWhenANormIsZero) {
  Builder builder;
  const TensorDesc desc{DType::kF64, {{'D', 2}}};
  record_update(builder, {{"zero", desc, 1, 0}, {"still", desc, 1, 0}}, {.name = "lamb", .lr = 0.25});
  ProgramRunner runner(builder.finish());
  runner.set(kLossScaleState, {1});
  runner.set("hyper", {0.25, 1, 0, 0});
  runner.set("still", {1, 2});
  runner.set("grad/zero", {3, -4});
  runner.run();
  EXPECT_NEAR(runner.get("zero")[0], -0.25, 1e-6);
  EXPECT_NEAR(runner.get("zero")[1], 0.25, 1e-6);
  EXPECT_EQ(runner.get("still"), (std::vector<double>{1, 2}));
}

TEST(Lamb, KeepsItsRatioWithinTheTrustLimits) {
  for (const auto& [least, most, ratio] : {std::tuple{0.0, 0.0, 5.0}, {0.0, 2.0, 2.0}, {7.0, 9.0, 7.0}}) {
    Builder builder;
    const OptimConfig config{.name = "lamb", .lr = 0.25, .trust_min = least, .trust_max = most};
    record_update(builder, {{"w", {DType::kF64, {{'D', 1}}}, 1, 0}}, config);
    ProgramRunner runner(builder.finish());
    runner.set(kLossScaleState, {1});
    runner.set("hyper", {0.25, 1, 0, 0});
    runner.set("w", {5});
    runner.set("grad/w", {3});  // whose direction is 1 at the first update
    runner.run();
    EXPECT_NEAR(runner.get("w")[0], 5 - 0.25 * ratio, 1e-5);
  }
}

TEST(Adam, WithoutBiasCorrectionTakesTheMomentsAsTheyAre) {
  Builder builder;
  record_update(
      builder, {{"w", {DType::kF64, {{'D', 1}}}, 1, 0}},
      {.name = "adamw", .lr = 0.5, .beta1 = 0.9, .beta2 = 0.9996, .eps = 0, .bias_correction = false});
  ProgramRunner runner(builder.finish());
  runner.set(kLossScaleState, {1});
  runner.set("hyper", {0.5, 1, 0, 0});
  runner.set("w", {0});
  runner.set("grad/w", {3});
  runner.run();
  EXPECT_NEAR(runner.get("w")[0], -0.5 * 0.1 / 0.02, 1e-9) << "and 0.5 with it";
}

TEST(Lion, StandsStillWithoutDirection) {
  Builder builder;
  record_update(builder, {{"w", {DType::kF64, {{'D', 3}}}, 1, 0}}, {.name = "lion", .lr = 0.5});
  ProgramRunner runner(builder.finish());
  runner.set(kLossScaleState, {1});
  runner.set("hyper", {0.5, 1, 0, 0});
  runner.set("w", {1, 1, 1});
  runner.set("grad/w", {2, 0, -1e-30});
  runner.run();
  EXPECT_EQ(runner.get("w"), (std::vector<double>{0.5, 1, 1.5}));
}

// Every style of weight decay follows its schedule, coupled decay too.
TEST(UpdateScale, DecayFollowsItsSchedule) {
  const auto scale = [](DecayStyle style) {
    return UpdateScale{.lr_scale = 2, .weight_decay = 0.1, .decay = style, .base_lr = 0.5};
  };
  const StepValues step{.lr = 0.25, .decay = 0.5};
  EXPECT_DOUBLE_EQ(scale(DecayStyle::kCoupled).coupled(step), 0.1 * 0.5);
  EXPECT_DOUBLE_EQ(scale(DecayStyle::kCoupled).shrink(step), 0);
  EXPECT_DOUBLE_EQ(scale(DecayStyle::kDecoupled).coupled(step), 0);
  EXPECT_DOUBLE_EQ(scale(DecayStyle::kDecoupled).shrink(step), 0.25 * 2 * 0.1 * 0.5);
  EXPECT_DOUBLE_EQ(scale(DecayStyle::kSchedule).shrink(step), 0.25 / 0.5 * 0.1 * 0.5);
}

}  // namespace
}  // namespace vitrail
