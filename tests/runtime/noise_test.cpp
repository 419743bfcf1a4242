// How far a right kernel may be off, computed by hand from the definition: a sum's own roundings by its
// partial sums, the result's by its type, and what a kernel declares to round in between.
#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_pool.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/scale.h"
#include "runtime/check/noise.h"

namespace vitrail {
namespace {

constexpr double kUnit = 0x1p-24, kHalf = 0x1p-8;               // of f32, and of bf16
constexpr double kSumVariance = (2 * kUnit) * (2 * kUnit) / 3;  // a partial sum is off by up to a whole unit

struct Case {
  OpPtr op;
  std::vector<Known> ins;
  Known out;
  DType type = DType::kF32;
  Rounding rounding = {};
  std::vector<DType> in_types = {};  // f32 where nothing is said
};

Noise noise_of(const Case& c) {
  ThreadPool pool(1);
  std::vector<TensorDesc> descs;
  for (size_t i = 0; i < c.ins.size(); ++i)
    descs.push_back({i < c.in_types.size() ? c.in_types[i] : DType::kF32, c.ins[i].shape});
  return result_noise({*c.op, descs, c.ins, c.rounding, pool}, {&c.out, 1}, {&c.type, 1})[0];
}

void expect_noise(const char* name, const Case& c, const Values& bound, const Values& variance) {
  SCOPED_TRACE(name);
  const Noise found = noise_of(c);
  ASSERT_EQ(found.bound.size(), bound.size());
  for (size_t i = 0; i < bound.size(); ++i) {
    EXPECT_NEAR(found.bound[i], bound[i], 1e-6 * bound[i]) << i;
    EXPECT_NEAR(found.variance[i], variance[i], 1e-6 * variance[i]) << i;
  }
}

template <typename T, typename... Args>
OpPtr op(Args... args) {
  return std::make_shared<T>(args...);
}

const Shape kThree{{'B', 1}, {'D', 3}}, kPair{{'B', 1}, {'F', 2}}, kWeight{{'F', 2}, {'D', 3}};

TEST(NoiseOfSums, FollowsThePartialSums) {
  // Partial sums 1, 3, 6 and 2, 2, -1.
  expect_noise("linear",
               {op<LinearOp>(), {{kThree, {1, 2, 3}}, {kWeight, {1, 1, 1, 2, 0, -1}}}, {kPair, {6, -1}}},
               {12 * kUnit, 2 * kUnit}, {46 * kSumVariance, 9 * kSumVariance});
  // 1 + 8, 2 + 10, 3 + 12.
  expect_noise(
      "dx", {op<LinearDxOp>(), {{kPair, {1, 2}}, {kWeight, {1, 2, 3, 4, 5, 6}}}, {kThree, {9, 12, 15}}},
      {18 * kUnit, 24 * kUnit, 30 * kUnit}, {82 * kSumVariance, 148 * kSumVariance, 234 * kSumVariance});
  const Shape rows{{'B', 2}, {'D', 1}}, grads{{'B', 2}, {'F', 1}};
  expect_noise("dw", {op<LinearDwOp>(), {{rows, {1, 3}}, {grads, {2, 5}}}, {{{'F', 1}, {'D', 1}}, {17}}},
               {34 * kUnit}, {293 * kSumVariance});
  const Shape image{{'B', 1}, {'C', 1}, {'Y', 2}, {'X', 4}}, patch{{'D', 1}, {'C', 1}, {'P', 2}, {'Q', 2}};
  expect_noise("patches",
               {op<PatchEmbedOp>(),
                {{image, {1, 2, 3, 4, 5, 6, 7, 8}}, {patch, {1, 1, 1, 1}}},
                {{{'B', 1}, {'N', 2}, {'D', 1}}, {14, 22}}},
               {28 * kUnit, 44 * kUnit}, {270 * kSumVariance, 738 * kSumVariance});
  expect_noise("patches' gradient",
               {op<PatchEmbedDwOp>(int64_t{2}, int64_t{2}),
                {{image, {1, 2, 3, 4, 5, 6, 7, 8}}, {{{'B', 1}, {'N', 2}, {'D', 1}}, {1, 2}}},
                {patch, {7, 10, 19, 22}}},
               {14 * kUnit, 20 * kUnit, 38 * kUnit, 44 * kUnit},
               {50 * kSumVariance, 104 * kSumVariance, 386 * kSumVariance, 520 * kSumVariance});
}

// Errors of a factor count by the other one: a variance of 1/4 and a bound of 3 / 2 are a mean square of 1.
TEST(NoiseOfSums, TakesThatOfItsFactors) {
  Known x{kThree, {1, 2, 3}, {{1.5, 0, 0}, {0.25, 0, 0}}};
  expect_noise("linear", {op<LinearOp>(), {x, {kWeight, {3, 0, 0, 2, 0, 0}}}, {kPair, {3, 2}}},
               {6 * kUnit, 4 * kUnit}, {9 * 1 + 27 * kSumVariance, 4 * 1 + 12 * kSumVariance});
  const Known w{kWeight, {3, 0, 0, 2, 0, 0}, {{0, 0, 0, 1.5, 0, 0}, {0, 0, 0, 0.25, 0, 0}}};
  x.noise = {}, x.values = {4, 0, 0};
  expect_noise("its weight", {op<LinearOp>(), {x, w}, {kPair, {12, 8}}}, {24 * kUnit, 16 * kUnit},
               {3 * 144 * kSumVariance, 16 * 1 + 3 * 64 * kSumVariance});
}

TEST(NoiseOfElements, AddsAndScales) {
  const Shape row{{'D', 1}};
  const Known x{{{'B', 1}, {'D', 1}}, {5}, {{0.5}, {0.25}}}, y{row, {2}, {{0.125}, {0.5}}};
  expect_noise("bias", {op<BiasOp>(), {x, y}, {x.shape, {7}}}, {0.625 + 14 * kUnit}, {0.75});
  expect_noise("scale", {op<ScaleOp>(), {x, {row, {-3}}}, {x.shape, {-15}}}, {1.5 + 30 * kUnit}, {9 * 0.25});
  expect_noise("bf16", {op<BiasOp>(), {x, y}, {x.shape, {7}}, DType::kBF16}, {0.625 + 7 * kUnit + 7 * kHalf},
               {0.75});
  expect_noise("f16 near 0", {op<BiasOp>(), {{x.shape, {1}}, {row, {-1}}}, {x.shape, {0}}, DType::kF16},
               {0x1p-25}, {0});
}

TEST(NoiseOfElements, FunctionsAreFourUnitsOff) {
  const Shape row{{'D', 1}};
  const double gelu = 0.5 * 2 * std::erfc(-2 * std::sqrt(0.5));
  const double slope = 0.5 * std::erfc(-2 * std::sqrt(0.5)) + 2 * std::exp(-2.0) / std::sqrt(2 * M_PI);
  expect_noise("gelu", {op<GeluOp>(false), {{row, {2}}}, {row, {gelu}}}, {8 * kUnit + gelu * kUnit}, {0});
  expect_noise("library's", {op<GeluOp>(false), {{row, {2}}}, {row, {gelu}}, DType::kF32, {.gelu = true}},
               {2 * 0x1p-18 + gelu * kUnit}, {0});
  expect_noise("gradient", {op<GeluGradOp>(false, false), {{row, {2}}, {row, {3}}}, {row, {3 * slope}}},
               {4 * kUnit * 3 * 2 + 3 * slope * kUnit}, {0});
  const Known dy{row, {3}, {{0.5}, {0.25}}};
  expect_noise("of dy", {op<GeluGradOp>(false, false), {{row, {2}}, dy}, {row, {3 * slope}}},
               {0.5 * slope + 4 * kUnit * 3 * 2 + 3 * slope * kUnit}, {slope * slope * 0.25});
  expect_noise("kept slope", {op<GeluSlopeGradOp>(false), {{row, {-2}}, dy}, {row, {-6}}},
               {1 + 6 * kUnit + 6 * kUnit}, {4 * 0.25});
  const double tanh = std::tanh(1.0);
  expect_noise("any other", {op<TanhOp>(), {{row, {1}}}, {row, {tanh}}},
               {8 * kUnit * tanh + 4 * kUnit + kUnit * tanh}, {0});
  expect_noise("any other in f64", {op<TanhOp>(), {{row, {1}}}, {row, {tanh}}, DType::kF64},
               {8 * 0x1p-53 * tanh + 4 * 0x1p-53 + 0x1p-53 * tanh}, {0});
}

// What a kernel declares to round in between is rounded to the member's type.
TEST(NoiseOfFusedNodes, CountsWhatIsRoundedInBetween) {
  const OpPtr biased = std::make_shared<FusedOp>(
      std::vector<FusedOp::Member>{{op<LinearOp>(), {0, 1}}, {op<BiasOp>(), {made_by(0), 2}}});
  const Shape row{{'F', 1}}, weight{{'F', 1}, {'D', 3}}, out{{'B', 1}, {'F', 1}};
  const std::vector<Known> ins = {{kThree, {1, 2, 3}}, {weight, {1, 1, 1}}, {row, {10}}};
  const std::vector<DType> half(3, DType::kBF16);
  const Values variance = {46 * kSumVariance};
  const double plain = 6 * kUnit + 16 * kUnit + 16 * kHalf;
  const auto with = [&](Rounding rounding) {
    return Case{biased, ins, {out, {16}}, DType::kBF16, rounding, half};
  };
  expect_noise("nothing", with({}), {plain}, variance);
  expect_noise("gemm", with({.gemm = true}), {plain + 6 * kHalf}, variance);
  expect_noise("members", with({.members = true}), {plain + 6 * kHalf}, variance);
  expect_noise("bias", with({.bias = true}), {plain + 10 * kHalf}, variance);
  const OpPtr added = std::make_shared<FusedOp>(std::vector<FusedOp::Member>{
      {op<LinearOp>(), {0, 1}}, {op<BiasOp>(), {made_by(0), 2}}, {op<AddOp>(), {3, made_by(1)}}});
  std::vector<Known> more = ins;
  more.push_back({out, {-40}});
  // Of 6, 16 and 6 - 40 the last is the largest.
  expect_noise("residual", {added, more, {out, {-24}}, DType::kBF16, {.residual = true}, {4, DType::kBF16}},
               {6 * kUnit + 16 * kUnit + 24 * kUnit + 24 * kHalf + 34 * kHalf}, variance);
}

// A residual is added to the sums of a GEMM, whose rows need not be as long as those of the member before it.
TEST(NoiseOfFusedNodes, AResidualCountsOnlyWhereOneIsAddedToAGemm) {
  const Shape one{{'D', 1}}, row{{'F', 2}}, weight{{'F', 2}, {'D', 1}}, out{{'B', 1}, {'F', 2}};
  std::vector<FusedOp::Member> members = {
      {op<ScaleOp>(), {0, 1}}, {op<LinearOp>(), {made_by(0), 2}}, {op<BiasOp>(), {made_by(1), 3}}};
  std::vector<Known> ins = {{{{'B', 1}, {'D', 1}}, {2}}, {one, {3}}, {weight, {1, -1}}, {row, {10, 20}}};
  const auto with = [&](const Values& result, bool residual) {
    return Case{std::make_shared<FusedOp>(members), ins, {out, result}, DType::kBF16, {.residual = residual},
                std::vector<DType>(5, DType::kBF16)};
  };
  const Noise without = noise_of(with({16, 14}, false));
  expect_noise("no residual", with({16, 14}, true), without.bound, without.variance);
  members.push_back({op<AddOp>(), {4, made_by(2)}}), ins.push_back({out, {-40, 1}});
  const Noise exact = noise_of(with({-24, 15}, false));
  // Of 6, 16 and 6 - 40, and of -6, 14 and -6 + 1.
  expect_noise("a residual", with({-24, 15}, true),
               {exact.bound[0] + 34 * kHalf, exact.bound[1] + 14 * kHalf}, exact.variance);
}

// A GEMM of rounded factors is off by a share of its results' root mean square, which infinite ones are not
// part of; tensor cores sum like f16.
TEST(NoiseOfRoundedFactors, IsAShareOfTheResults) {
  const Shape row{{'B', 1}, {'F', 4}}, weight{{'F', 4}, {'D', 3}};
  const Case rounded{op<LinearOp>(Arithmetic::kTF32),
                     {{kThree, {1, 2, 3}}, {weight, Values(12, 1)}},
                     {row, {3, -4, 0, INFINITY}}};
  const Noise found = noise_of(rounded);
  ASSERT_EQ(found.typical.size(), 4u);
  const double f16 = 0x1p-11, bound = 4 * f16 * std::sqrt(3.0) * 4 + 2 * f16, rms = std::sqrt(25 / 4.0);
  const Values results = {3, 4, 0};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(found.bound[i], bound + results[i] * kUnit, 1e-6 * bound) << i;
    EXPECT_NEAR(found.typical[i], 0.002 * rms + results[i] * kUnit / std::sqrt(3.0), 1e-9) << i;
    EXPECT_EQ(found.variance[i], 0) << i;
  }
  Case exact = rounded;
  exact.op = op<LinearOp>();
  exact.out.values = {3, 4, 0, 1};
  EXPECT_TRUE(noise_of(exact).typical.empty()) << "spread evenly up to the bound";
  exact.op = op<LinearOp>(Arithmetic::kInt8);
  EXPECT_TRUE(noise_of(exact).typical.empty()) << "sums of int8 are exact";
}

// Of a layernorm's gradients the sums of rows alone take the roundings of the rows that they sum.
TEST(NoiseOfLayernormGrads, SumsTakeThatOfTheirRows) {
  const Shape rows{{'N', 2}, {'D', 3}}, row{{'D', 3}};
  const std::vector<Known> ins = {{rows, Values(6, 1)}, {row, Values(3, 1)}, {rows, Values(6, 1)}};
  const std::vector<TensorDesc> descs = {{DType::kF32, rows}, {DType::kF32, row}, {DType::kF32, rows}};
  const std::vector<Known> wanted = {
      {rows, {1, 2, 4, 8, 16, 32}}, {row, {1, 1, 1}}, {row, {1, 1, 1}}, {row, {9, 18, 36}}};
  const std::vector<DType> types = {DType::kBF16, DType::kF32, DType::kF32, DType::kF32};
  ThreadPool pool(1);
  const LayernormGradOp norm(1e-6, true, false, true);
  const std::vector<Noise> found = result_noise({norm, descs, ins, {}, pool}, wanted, types);
  ASSERT_EQ(found.size(), 4u);
  for (size_t r = 0; r < 3; ++r) EXPECT_EQ(found[r].variance, Values(wanted[r].values.size())) << r;
  for (size_t i = 0; i < 3; ++i) {
    const double first = wanted[0].values[i] * kHalf, second = wanted[0].values[i + 3] * kHalf;
    EXPECT_NEAR(found[3].variance[i], (first * first + second * second) / 3, 1e-12) << i;
  }
  // Without parameters the sums are the second result.
  const LayernormGradOp frozen(1e-6, false, false, true);
  const std::vector<Known> two = {wanted[0], wanted[3]};
  const std::vector<Noise> less =
      result_noise({frozen, descs, ins, {}, pool}, two, std::span(types).first(2));
  EXPECT_EQ(less[0].variance, Values(6));
  EXPECT_EQ(less[1].variance, found[3].variance);
  // Nobody asked for sums: every result is its own.
  const LayernormGradOp plain(1e-6, true);
  const std::vector<Noise> none =
      result_noise({plain, descs, ins, {}, pool}, std::span(wanted).first(3), std::span(types).first(3));
  for (size_t r = 0; r < 3; ++r) EXPECT_EQ(none[r].variance, Values(wanted[r].values.size())) << r;
}

}  // namespace
}  // namespace vitrail
