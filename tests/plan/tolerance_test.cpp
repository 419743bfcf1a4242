#include "plan/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"

namespace vitrail {
namespace {

const Dim kB('B', 2), kN('N', 7), kD('D', 12), kF('F', 20), kH('H', 3), kE('E', 4), kK('K', 9), kS('S', 1);

std::vector<TensorDesc> descs(const std::vector<Shape>& shapes, DType dtype = DType::kF32) {
  std::vector<TensorDesc> result;
  result.reserve(shapes.size());
  for (const Shape& shape : shapes) result.push_back({dtype, shape});
  return result;
}

TEST(ReductionLength, IsTheNumberOfTermsOfTheLongestSum) {
  const struct {
    OpPtr op;
    std::vector<Shape> ins;
    int64_t length;
  } rows[] = {
      {std::make_shared<LinearOp>(), {{kB, kN, kD}, {kF, kD}}, 12},
      {std::make_shared<LinearDxOp>(), {{kB, kN, kF}, {kF, kD}}, 20},
      {std::make_shared<LinearDwOp>(), {{kB, kN, kD}, {kB, kN, kF}}, 14},
      {std::make_shared<PatchEmbedDwOp>(2, 2), {{kB, {'C', 3}, {'Y', 2}, {'X', 14}}, {kB, kN, kD}}, 14},
      {std::make_shared<AttentionGradOp>(), {{kB, kN, {'T', 3}, kH, kE}, {kB, kN, kH, kE}}, 7},
      {std::make_shared<AttentionGradOp>(), {{kS, kH, kE}, {kB, kN, {'T', 2}, kH, kE}, {kB, kS, kH, kE}}, 14},
      {std::make_shared<LayernormGradOp>(1e-6, true), {{kB, kN, kD}, {kD}, {kB, kN, kD}}, 14},
      {std::make_shared<SumRowsOp>(1), {{kB, kN, kD}}, 14},
      {std::make_shared<SumRowsOp>(2), {{kB, kN, kD}}, 2},
      {std::make_shared<SumTokensOp>(0, 1), {{kB, kN, kD}}, 2},
      {std::make_shared<CrossEntropyOp>(LossKind::kSoftmax), {{kB, kK}, {kB, kK}}, 9},
      {std::make_shared<TanhGradOp>(), {{kB, kK}, {kB, kK}}, 1},
  };
  for (const auto& row : rows)
    EXPECT_EQ(row.op->reduction_length(descs(row.ins)), row.length) << row.op->kind();
}

TEST(ReductionLength, OfAFusedNodeIsItsLongestMembers) {
  const FusedOp summed(
      {{std::make_shared<LinearDwOp>(), {0, 1}}, {std::make_shared<AccumulateOp>(), {2, made_by(0)}}});
  EXPECT_EQ(summed.reduction_length(descs({{kB, kN, kD}, {kB, kN, kF}, {kF, kD}})), 14);
}

TEST(Tolerance, GrowsWithRoundoffAndLength) {
  EXPECT_LT(tolerance_of(DType::kF64, 10).relative, tolerance_of(DType::kF32, 10).relative);
  EXPECT_LT(tolerance_of(DType::kF32, 10).relative, tolerance_of(DType::kF16, 10).relative);
  EXPECT_LT(tolerance_of(DType::kF16, 10).relative, tolerance_of(DType::kBF16, 10).relative);
  EXPECT_EQ(2 * tolerance_of(DType::kF32, 10).relative, tolerance_of(DType::kF32, 40).relative);
  EXPECT_THROW(tolerance_of(DType::kI64, 1), Error);
}

// A GEMM that rounds what another member made may round a few values the other way; alone it may not.
TEST(Tolerance, OfARoundedGemmIsWiderOnlyBehindAnotherMember) {
  const auto of = [](const Op& op, const std::vector<Shape>& ins) {
    return tolerance_of(op, descs(ins)).relative;
  };
  const auto after_norm = [](Arithmetic arithmetic) {
    return FusedOp({{std::make_shared<LayernormOp>(1e-6), {0, 1, 2}},
                    {std::make_shared<LinearOp>(arithmetic), {made_by(0), 3}}});
  };
  const std::vector<Shape> plain = {{kB, kN, kD}, {kF, kD}}, normed = {{kB, kN, kD}, {kD}, {kD}, {kF, kD}};
  for (Arithmetic arithmetic : {Arithmetic::kBF16, Arithmetic::kInt8}) {
    EXPECT_EQ(of(LinearOp(arithmetic), plain), of(LinearOp(), plain));
    EXPECT_GT(of(after_norm(arithmetic), normed), of(after_norm(Arithmetic::kExact), normed));
    EXPECT_LT(of(after_norm(arithmetic), normed), 0.01);
  }
}

TEST(Tolerance, OfFp8AndTf32IsThatOfF16) {
  const std::vector<TensorDesc> ins = descs({{kB, kN, kD}, {kF, kD}});
  const int64_t length = LinearOp().reduction_length(ins);
  for (Arithmetic arithmetic : {Arithmetic::kFp8, Arithmetic::kTF32}) {
    const LinearOp op(arithmetic);
    EXPECT_EQ(tolerance_of(op, ins).relative, tolerance_of(DType::kF16, length).relative);
  }
}

TEST(Tolerance, IsEightRoundoffsOfTheRootOfTheTerms) {
  const std::pair<DType, double> rows[] = {{DType::kF64, std::ldexp(1, -53)},
                                           {DType::kF32, std::ldexp(1, -24)},
                                           {DType::kF16, std::ldexp(1, -11)},
                                           {DType::kBF16, std::ldexp(1, -8)}};
  for (const auto& [dtype, unit] : rows) {
    EXPECT_EQ(roundoff(dtype), unit) << to_string(dtype);
    for (const auto& [length, root] : {std::pair<int64_t, double>{0, 1}, {1, 1}, {16, 4}, {400, 20}}) {
      EXPECT_DOUBLE_EQ(tolerance_of(dtype, length).relative, 8 * unit * root) << to_string(dtype);
      EXPECT_EQ(tolerance_of(dtype, length).absolute, 4 * unit);
    }
  }
  EXPECT_THROW(roundoff(DType::kI32), Error);
}

}  // namespace
}  // namespace vitrail
