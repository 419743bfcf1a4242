// What the ops answer of themselves beside their shapes: cost, the input they overwrite, sources of members,
// tables, arithmetic.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/sincos_positions.h"
#include "run_op.h"

namespace vitrail {
namespace {

TEST(Cost, ReadsEveryInputAndWritesEveryOutputOnce) {
  for (const OpCase& c : op_cases()) {
    const std::vector<TensorDesc> ins = input_descs(c, c.ins, {}), outs = c.op->infer(ins);
    double bytes = 0;
    for (const TensorDesc& desc : ins) bytes += static_cast<double>(desc.bytes());
    for (const TensorDesc& desc : outs) bytes += static_cast<double>(desc.bytes());
    EXPECT_EQ(c.op->cost(ins, outs).bytes, bytes) << c.name;
    EXPECT_GE(c.op->cost(ins, outs).flops, 0) << c.name;
  }
}

TEST(InPlace, OnlyOpsThatKeepTheirShapeOverwriteAnInput) {
  for (const OpCase& c : op_cases()) {
    const int input = c.op->in_place_input();
    if (input < 0) continue;
    const std::vector<TensorDesc> ins = input_descs(c, c.ins, {});
    EXPECT_EQ(ins[static_cast<size_t>(input)], c.op->infer(ins)[0]) << c.name;
  }
}

TEST(Fused, NeverOverwritesTheValueItStartsFrom) {
  // In x + linear(x) the residual is also the GEMM's input, and must outlive it.
  const FusedOp fused({{std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<AddOp>(), {0, made_by(0)}}});
  EXPECT_EQ(fused.in_place_input(), -1);
  const FusedOp apart({{std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<AddOp>(), {2, made_by(0)}}});
  EXPECT_EQ(apart.in_place_input(), 2);
  const FusedOp turned(
      {{std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<AddOp>(), {made_by(0), 2}}});
  EXPECT_EQ(turned.in_place_input(), 2) << "whichever side of the sum it stands on";
}

TEST(Fused, ASourceIsAnInputOrAMemberAndNeverTakenForTheOther) {
  const FusedOp::Source input = 2, member = made_by(2);
  EXPECT_NE(input, member);
  EXPECT_EQ(input.input(), 2);
  EXPECT_EQ(member.member(), 2);
  EXPECT_THROW(static_cast<void>(member.input()), Error);
  EXPECT_THROW(static_cast<void>(input.member()), Error);
  const std::vector<int> ins = {1, 2, 3}, made = {4, 5, 6};
  EXPECT_EQ(input.pick(ins, made), 3);
  EXPECT_EQ(member.pick(ins, made), 6);
}

// big_vision's posemb_sincos_2d: sines and cosines of the column, then of the row, frequencies from 1 down to
// 1/10000.
TEST(SincosPositions, FollowColumnsAndRowsOfAGridThatIsNotSquare) {
  constexpr int64_t kRows = 2, kColumns = 5, kWidth = 12, kQuarter = kWidth / 4;
  const std::vector<double> table = SincosPositionsOp(kRows, kColumns, kWidth, DType::kF64).table();
  ASSERT_EQ(table.size(), static_cast<size_t>(kRows * kColumns * kWidth));
  const double omegas[kQuarter] = {1, 0.01, 0.0001};
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column)
      for (int64_t i = 0; i < kQuarter; ++i) {
        const double* const found = table.data() + (row * kColumns + column) * kWidth + i;
        const double x = static_cast<double>(column) * omegas[i], y = static_cast<double>(row) * omegas[i];
        EXPECT_NEAR(found[0], std::sin(x), 1e-15);
        EXPECT_NEAR(found[kQuarter], std::cos(x), 1e-15);
        EXPECT_NEAR(found[2 * kQuarter], std::sin(y), 1e-15);
        EXPECT_NEAR(found[3 * kQuarter], std::cos(y), 1e-15);
      }
}

TEST(Infer, EveryLinearSaysItsArithmetic) {
  for (const Arithmetic wanted : {Arithmetic::kExact, Arithmetic::kTF32, Arithmetic::kFp8}) {
    EXPECT_EQ(arithmetic_of(LinearOp(wanted)), wanted);
    EXPECT_EQ(arithmetic_of(LinearDxOp(wanted)), wanted);
    EXPECT_EQ(arithmetic_of(LinearDwOp(wanted)), wanted);
  }
}

}  // namespace
}  // namespace vitrail
