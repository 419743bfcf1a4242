// The verdict on a result, from numbers worked out by hand: twice the bound and ten standard deviations for
// an element, two and a half times the expected root mean square, and a little more for few elements, for a
// part.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/bias.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "runtime/check/noise.h"

namespace vitrail {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = INFINITY;

Known known(Values values, double bound, double variance) {
  const size_t count = values.size();
  return {{{'D', static_cast<int64_t>(count)}},
          std::move(values),
          {Values(count, bound), Values(count, variance)}};
}

double share(double wanted, double found, double bound, double variance) {
  return judge(known({wanted}, bound, variance), Values{found}).share;
}

TEST(Judge, WhatIsTheSameIsRightWhateverItIs) {
  for (const double value : {0.0, -1.5, kInf, -kInf, kNan}) EXPECT_EQ(share(value, value, 0, 0), 0) << value;
  EXPECT_EQ(share(0.0, -0.0, 0, 0), 0);
}

TEST(Judge, NoToleranceReachesNanOrInfinity) {
  for (const double wanted : {1.0, kInf, -kInf, kNan})
    for (const double found : {2.0, kInf, -kInf, kNan}) {
      const bool same = wanted == found || (std::isnan(wanted) && std::isnan(found));
      if (!same && !(std::isfinite(wanted) && std::isfinite(found))) {
        EXPECT_EQ(share(wanted, found, 1e30, 1e30), kInf) << wanted << " " << found;
      }
    }
  EXPECT_EQ(share(1, 1 + 1e-15, 0, 0), kInf) << "nothing is allowed";
}

// Its neighbour may be off by a lot: the part as a whole is right.
TEST(Judge, WhereNothingIsAllowedAnElementMustBeTheSame) {
  Known wanted = known({1, 1}, 0, 0);
  wanted.noise.bound[1] = 100;
  EXPECT_EQ(judge(wanted, Values{1, 2}).share, 1.0 / 200);
  EXPECT_EQ(judge(wanted, Values{1 + 1e-15, 1}).share, kInf);
}

// One wrong element among many right ones exceeds its own limit first.
TEST(Judge, AnElementMayBeOffByTwiceItsBoundAndTenDeviations) {
  constexpr size_t kCount = 10000;
  const Known wanted = known(Values(kCount, 1.0), 0.5, 0.04);
  Values found(kCount, 1.0);
  for (const double off : {-1.5, 1.5}) {
    found[7777] = 1 + off;
    EXPECT_DOUBLE_EQ(judge(wanted, found).share, 1.5 / (2 * 0.5 + 10 * 0.2));
  }
  found[7777] = 1 + 3.01;
  EXPECT_GT(judge(wanted, found).share, 1);
  EXPECT_NE(judge(wanted, found).where.find("element 7777"), std::string::npos);
}

// All elements are off alike: the mean square of a bound is a third of its square.
TEST(Judge, APartMayBeOffByTwoAndAHalfTimesWhatIsExpected) {
  constexpr size_t kCount = 100;
  const double expected = std::sqrt(0.3 * 0.3 / 3 + 0.04);
  const double allowed = 2.5 * (1 + 2 / std::sqrt(static_cast<double>(kCount))) * expected;
  const Known wanted = known(Values(kCount, 2.0), 0.3, 0.04);
  const Verdict verdict = judge(wanted, Values(kCount, 2.8));
  EXPECT_NEAR(verdict.share, 0.8 / allowed, 1e-12);
  EXPECT_NE(verdict.where.find("root mean square"), std::string::npos) << verdict.where;
}

// A wrong third is not hidden by two right ones.
TEST(Judge, QueriesKeysAndValuesAreJudgedApart) {
  constexpr size_t kTokens = 50, kSize = 2;
  Known wanted = known(Values(kTokens * 3 * kSize, 0.0), 0, 0.01);
  wanted.shape = {{'N', kTokens}, {'T', 3}, {'E', kSize}};
  Values found(wanted.values.size());
  for (size_t i = 0; i < found.size(); ++i) found[i] = i / kSize % 3 == 1 ? 0.25 : 0;
  const double count = kTokens * kSize;
  EXPECT_NEAR(judge(wanted, found).share, 0.25 / (2.5 * (1 + 2 / std::sqrt(count)) * 0.1), 1e-12);
  EXPECT_NE(judge(wanted, found).where.find("part 1"), std::string::npos);
}

TEST(Judge, RefusesResultsOfAnotherLength) {
  EXPECT_THROW(judge(known({1, 2}, 1, 1), Values{1}), Error);
}

// A GEMM of zeros and a large f32 bias that the kernel rounds to 16 bits: the result may be off by what
// rounding the bias costs, and by more than without.
TEST(ResultNoise, ABiasThatIsRoundedMayMoveTheResult) {
  const TensorDesc x{DType::kBF16, {{'B', 1}, {'D', 2}}}, w{DType::kBF16, {{'F', 1}, {'D', 2}}},
      bias{DType::kF32, {{'F', 1}}};
  const FusedOp op({{std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<BiasOp>(), {made_by(0), 2}}});
  const double large = 100;
  const std::vector<TensorDesc> descs = {x, w, bias};
  const std::vector<Known> ins = {{x.shape, {0, 0}}, {w.shape, {0, 0}}, {bias.shape, {large}}};
  const Known wanted{{{'B', 1}, {'F', 1}}, {large}};
  ThreadPool pool(1);
  const auto bound = [&](bool rounded) {
    const NoiseQuery query{op, descs, ins, {.bias = rounded}, pool};
    const DType type = DType::kBF16;
    return result_noise(query, {&wanted, 1}, {&type, 1})[0].bound[0];
  };
  EXPECT_NEAR(bound(true) - bound(false), large * 0x1p-8, large * 0x1p-12);
}

}  // namespace
}  // namespace vitrail
