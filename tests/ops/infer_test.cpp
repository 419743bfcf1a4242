// Shapes, costs and refusals of the ops, as tables.
#include <gtest/gtest.h>

#include "op_cases.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/average.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/load_param.h"
#include "ops/patch_embed.h"
#include "ops/pool_tokens.h"
#include "ops/qk_norm.h"
#include "ops/scale.h"
#include "ops/sincos_positions.h"
#include "ops/softmax.h"

namespace vitrail {
namespace {

const Dim kB('B', 2), kN('N', 5), kD('D', 8), kH('H', 2), kE('E', 4), kT3('T', 3), kT2('T', 2);

std::vector<TensorDesc> descs(const std::vector<Shape>& shapes) {
  std::vector<TensorDesc> result;
  for (const Shape& shape : shapes) result.push_back({DType::kF32, shape});
  return result;
}

struct InferRow {
  OpPtr op;
  std::vector<Shape> ins;
  const char* out;
  double flops;
};

TEST(Infer, GivesShapesAndFlops) {
  const InferRow rows[] = {
      {std::make_shared<LinearOp>(), {{kB, kN, kD}, {{'F', 3}, kD}}, "[B2 N5 F3]", 2.0 * 10 * 8 * 3},
      {std::make_shared<PatchEmbedOp>(),
       {{kB, {'C', 3}, {'Y', 8}, {'X', 12}}, {kD, {'C', 3}, {'P', 4}, {'Q', 4}}},
       "[B2 N6 D8]",
       2.0 * 2 * 6 * 8 * 48},
      {std::make_shared<AttentionOp>(), {{kB, kN, kT3, kH, kE}}, "[B2 N5 H2 E4]", 2.0 * 2 * 25 * (16 + 5)},
      {std::make_shared<AttentionOp>(),
       {{{'S', 1}, kH, kE}, {kB, kN, kT2, kH, kE}},
       "[B2 S1 H2 E4]",
       2.0 * 2 * 5 * 21},
      {std::make_shared<AttentionProbsOp>(), {{kB, kN, kT3, kH, kE}}, "[B2 H2 N5 M5]", 100.0 * 13},
      {std::make_shared<ConcatTokensOp>(), {{{'S', 1}, kD}, {{'S', 3}, kD}, {kB, kN, kD}}, "[B2 N9 D8]", 0},
      {std::make_shared<SelectTokenOp>(1), {{kB, kN, kD}}, "[B2 D8]", 0},
      {std::make_shared<MeanTokensOp>(1), {{kB, kN, kD}}, "[B2 D8]", 80},
      {std::make_shared<DropTokensOp>(2), {{kB, kN, kD}}, "[B2 N3 D8]", 0},
      {std::make_shared<SincosPositionsOp>(2, 3, 8, DType::kF32), {}, "[N6 D8]", 48},
      {std::make_shared<SoftmaxOp>(), {{kB, {'K', 10}}}, "[B2 K10]", 100},
      {std::make_shared<LayernormOp>(1e-6), {{kB, kN, kD}, {kD}, {kD}}, "[B2 N5 D8]", 640},
  };
  for (const InferRow& row : rows) {
    const std::vector<TensorDesc> ins = descs(row.ins), outs = row.op->infer(ins);
    ASSERT_EQ(outs.size(), 1u);
    EXPECT_EQ(to_string(outs[0].shape), row.out) << row.op->kind();
    EXPECT_EQ(row.op->flops(ins, outs), row.flops) << row.op->kind();
  }
}

TEST(Infer, RefusesWhatDoesNotFit) {
  const std::pair<OpPtr, std::vector<Shape>> rows[] = {
      {std::make_shared<LinearOp>(), {{kB, kN, kD}}},
      {std::make_shared<LinearOp>(), {{kB, kN, kD}, {{'F', 3}, {'D', 9}}}},
      {std::make_shared<AddOp>(), {{kB, kD}, {kB, kN, kD}}},
      {std::make_shared<AverageOp>(), {{kB, kD}}},
      {std::make_shared<BiasOp>(), {{kB, kN, kD}, {kN}}},
      {std::make_shared<ScaleOp>(), {{kB, kN, kD}, {{'D', 7}}}},
      {std::make_shared<LayernormOp>(1e-6), {{kB, kN, kD}, {kD}}},
      {std::make_shared<LayernormOp>(1e-6), {{kB, kN, kH}, {kH}, {kH}}},
      {std::make_shared<SoftmaxOp>(), {{kB, kN, kD}}},
      {std::make_shared<AttentionOp>(), {{kB, kN, kT2, kH, kE}}},
      {std::make_shared<AttentionOp>(), {{{'S', 1}, kH, {'E', 5}}, {kB, kN, kT2, kH, kE}}},
      {std::make_shared<AttentionOp>(), {{kH, kE}, {kB, kN, kT2, kH, kE}}},
      {std::make_shared<ConcatTokensOp>(), {{kD}, {kB, kN, kD}}},
      {std::make_shared<LinearOp>(), {{kB, {'D', 0}}, {{'F', 3}, {'D', 0}}}},
      {std::make_shared<QkNormOp>(1e-6), {{kB, kN, kT2, kH, kE}, {kE}, {kE}, {kE}, {kE}}},
      {std::make_shared<PatchEmbedOp>(),
       {{kB, {'C', 3}, {'Y', 9}, {'X', 8}}, {kD, {'C', 3}, {'P', 4}, {'Q', 4}}}},
      {std::make_shared<PatchEmbedOp>(),
       {{kB, {'C', 1}, {'Y', 8}, {'X', 8}}, {kD, {'C', 3}, {'P', 4}, {'Q', 4}}}},
      {std::make_shared<ConcatTokensOp>(), {{kB, kN, kD}}},
      {std::make_shared<ConcatTokensOp>(), {{{'S', 1}, {'D', 9}}, {kB, kN, kD}}},
      {std::make_shared<SelectTokenOp>(5), {{kB, kN, kD}}},
      {std::make_shared<MeanTokensOp>(5), {{kB, kN, kD}}},
      {std::make_shared<DropTokensOp>(5), {{kB, kN, kD}}},
      {std::make_shared<SincosPositionsOp>(2, 2, 6, DType::kF32), {}},
      {std::make_shared<LoadParamOp>(TensorDesc{DType::kF32, {kD}}), {{{'D', 9}}}},
  };
  for (const auto& [op, ins] : rows) EXPECT_THROW(op->infer(descs(ins)), Error) << op->kind();
}

TEST(Cost, ReadsEveryInputAndWritesEveryOutputOnce) {
  for (const OpCase& c : op_cases()) {
    const std::vector<TensorDesc> ins = descs(c.ins), outs = c.op->infer(ins);
    double bytes = 0;
    for (const TensorDesc& desc : ins) bytes += static_cast<double>(desc.bytes());
    EXPECT_EQ(c.op->cost(ins, outs).bytes, bytes + static_cast<double>(outs[0].bytes())) << c.name;
  }
}

TEST(InPlace, OnlyOpsThatKeepTheirShapeOverwriteAnInput) {
  for (const OpCase& c : op_cases()) {
    const int input = c.op->in_place_input();
    if (input < 0) continue;
    const std::vector<TensorDesc> ins = descs(c.ins);
    EXPECT_EQ(ins[static_cast<size_t>(input)], c.op->infer(ins)[0]) << c.name;
  }
}

TEST(Fused, NeverOverwritesTheValueItStartsFrom) {
  // x + linear(x): the residual is also the product's input, and must outlive it.
  const FusedOp fused({{std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<AddOp>(), {0, ~0}}});
  EXPECT_EQ(fused.in_place_input(), -1);
  const FusedOp apart({{std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<AddOp>(), {2, ~0}}});
  EXPECT_EQ(apart.in_place_input(), 2);
}

}  // namespace
}  // namespace vitrail
