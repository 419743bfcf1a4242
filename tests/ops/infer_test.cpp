// Shapes, types and refusals of the ops, as tables.
#include <gtest/gtest.h>

#include "image/image_recipe.h"
#include "ops/activate.h"
#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/make_images.h"
#include "ops/max_tokens.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "ops/qk_norm.h"
#include "ops/qk_rmsnorm.h"
#include "ops/rmsnorm.h"
#include "ops/scale.h"
#include "ops/self_attention.h"
#include "ops/sincos_positions.h"
#include "ops/softmax.h"
#include "ops/update/control.h"
#include "run_op.h"

namespace vitrail {
namespace {

const Dim kB('B', 2), kN('N', 5), kD('D', 8), kH('H', 2), kE('E', 4), kT3('T', 3), kT2('T', 2);

std::vector<TensorDesc> descs(const std::vector<Shape>& shapes) {
  std::vector<TensorDesc> result;
  result.reserve(shapes.size());
  for (const Shape& shape : shapes) result.push_back({DType::kF32, shape});
  return result;
}

struct InferRow {
  OpPtr op;
  std::vector<Shape> ins;
  const char* out;
  double flops;
};

// `out`: the shapes of the outputs, with spaces between.
void expect_row(const InferRow& row) {
  const std::vector<TensorDesc> ins = descs(row.ins), outs = row.op->infer(ins);
  std::string shapes;
  for (const TensorDesc& out : outs) shapes += (shapes.empty() ? "" : " ") + to_string(out.shape);
  EXPECT_EQ(shapes, row.out) << row.op->kind();
  EXPECT_EQ(row.op->flops(ins, outs), row.flops) << row.op->kind();
}

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
      {std::make_shared<AttentionOp>(QueryScope::kClassToken),
       {{kB, kN, kT3, kH, kE}},
       "[B2 H2 E4]",
       2.0 * 2 * 5 * (16 + 5)},
      {std::make_shared<AttentionProbsOp>(), {{kB, kN, kT3, kH, kE}}, "[B2 H2 N5 M5]", 100.0 * 13},
      {std::make_shared<ConcatTokensOp>(), {{{'S', 1}, kD}, {{'S', 3}, kD}, {kB, kN, kD}}, "[B2 N9 D8]", 0},
      {std::make_shared<SelectTokenOp>(1), {{kB, kN, kD}}, "[B2 D8]", 0},
      {std::make_shared<MeanTokensOp>(1), {{kB, kN, kD}}, "[B2 D8]", 80},
      {std::make_shared<MaxTokensOp>(1), {{kB, kN, kD}}, "[B2 D8]", 80},
      {std::make_shared<SelfAttentionOp>(2), {{kB, kN, kD}}, "[B2 N5 D8]", 100.0 * 21},
      {std::make_shared<SelfAttentionGradOp>(2), {{kB, kN, kD}, {kB, kN, kD}}, "[B2 N5 D8]", 250.0 * 21},
      {std::make_shared<MaxTokensGradOp>(1), {{kB, kN, kD}, {kB, kD}}, "[B2 N5 D8]", 160},
      {std::make_shared<RmsnormOp>(1e-6), {{kB, kN, kD}, {kD}}, "[B2 N5 D8]", 320},
      {std::make_shared<RmsnormGradOp>(1e-6, true),
       {{kB, kN, kD}, {kD}, {kB, kN, kD}},
       "[B2 N5 D8] [D8]",
       800},
      {std::make_shared<ActivateOp>(ActKind::kRelu), {{kB, kN, kD}}, "[B2 N5 D8]", 320},
      {std::make_shared<PatchEmbedOp>(),
       {{kB, {'C', 3}, {'Y', 9}, {'X', 11}}, {kD, {'C', 3}, {'P', 4}, {'Q', 2}}},
       "[B2 N10 D8]",
       2.0 * 2 * 10 * 8 * 24},
      {std::make_shared<DropTokensOp>(2), {{kB, kN, kD}}, "[B2 N3 D8]", 0},
      {std::make_shared<SincosPositionsOp>(2, 3, 8, DType::kF32), {}, "[N6 D8]", 48},
      {std::make_shared<SoftmaxOp>(), {{kB, {'K', 10}}}, "[B2 K10]", 100},
      {std::make_shared<LayernormOp>(1e-6), {{kB, kN, kD}, {kD}, {kD}}, "[B2 N5 D8]", 640},
  };
  for (const InferRow& row : rows) expect_row(row);
}

TEST(Infer, GivesShapesAndFlopsOfGradients) {
  const Dim f('F', 3), s('S', 1), k('K', 10);
  const InferRow rows[] = {
      {std::make_shared<LinearDxOp>(), {{kB, kN, f}, {f, kD}}, "[B2 N5 D8]", 2.0 * 10 * 8 * 3},
      {std::make_shared<LinearDxOp>(), {{kB, kN, kT3, kH, kE}, {kT3, kH, kE, kD}}, "[B2 N5 D8]", 3840},
      {std::make_shared<LinearDwOp>(), {{kB, kN, kD}, {kB, kN, f}}, "[F3 D8]", 2.0 * 10 * 8 * 3},
      {std::make_shared<LinearDwOp>(), {{kB, kN, kH, kE}, {kB, kN, kD}}, "[D8 H2 E4]", 1280},
      {std::make_shared<PatchEmbedDwOp>(4, 4),
       {{kB, {'C', 3}, {'Y', 8}, {'X', 12}}, {kB, {'N', 6}, kD}},
       "[D8 C3 P4 Q4]",
       2.0 * 2 * 6 * 8 * 48},
      {std::make_shared<AttentionGradOp>(),
       {{kB, kN, kT3, kH, kE}, {kB, kN, kH, kE}},
       "[B2 N5 T3 H2 E4]",
       100.0 * 50},
      {std::make_shared<AttentionGradOp>(QueryScope::kClassToken),
       {{kB, kN, kT3, kH, kE}, {kB, kH, kE}},
       "[B2 N5 T3 H2 E4]",
       20.0 * 50},
      {std::make_shared<AttentionGradOp>(),
       {{s, kH, kE}, {kB, kN, kT2, kH, kE}, {kB, s, kH, kE}},
       "[S1 H2 E4] [B2 N5 T2 H2 E4]",
       20.0 * 50},
      {std::make_shared<LayernormGradOp>(1e-6, false),
       {{kB, kN, kD}, {kD}, {kB, kN, kD}},
       "[B2 N5 D8]",
       1280},
      {std::make_shared<LayernormGradOp>(1e-6, true),
       {{kB, kN, kD}, {kD}, {kB, kN, kD}},
       "[B2 N5 D8] [D8] [D8]",
       1280},
      {std::make_shared<SumRowsOp>(2), {{kB, kN, kD}}, "[N5 D8]", 80},
      {std::make_shared<SumTokensOp>(1, 3), {{kB, kN, kD}}, "[S3 D8]", 48},
      {std::make_shared<SelectTokenGradOp>(1, kN), {{kB, kD}}, "[B2 N5 D8]", 0},
      {std::make_shared<DropTokensGradOp>(2), {{kB, kN, kD}}, "[B2 N7 D8]", 0},
      {std::make_shared<CrossEntropyOp>(LossKind::kSoftmax), {{kB, k}, {kB, k}}, "[B2]", 160},
      {std::make_shared<CrossEntropyGradOp>(LossKind::kSoftmax), {{kB, k}, {kB, k}, {kB}}, "[B2 K10]", 160},
      {std::make_shared<AccumulateOp>(), {{kB, kD}, {kB, kD}}, "", 16},
  };
  for (const InferRow& row : rows) expect_row(row);
}

// Sums over many elements are as wide as sums need to be.
TEST(Infer, ParameterGradientsAreInTheAccumulatorsType) {
  const std::pair<OpPtr, std::vector<Shape>> rows[] = {
      {std::make_shared<LinearDwOp>(), {{kB, kN, kD}, {kB, kN, {'F', 3}}}},
      {std::make_shared<SumRowsOp>(1), {{kB, kN, kD}}},
      {std::make_shared<ScaleDwOp>(1), {{kB, kN, kD}, {kB, kN, kD}}},
      {std::make_shared<SumTokensOp>(0, 1), {{kB, kN, kD}}},
      {std::make_shared<LayernormGradOp>(1e-6, true), {{kB, kN, kD}, {kD}, {kB, kN, kD}}},
  };
  for (const auto& [op, shapes] : rows)
    for (const auto& [dtype, wide] : {std::pair{DType::kF64, DType::kF64},
                                      {DType::kF32, DType::kF32},
                                      {DType::kF16, DType::kF32},
                                      {DType::kBF16, DType::kF32}}) {
      std::vector<TensorDesc> ins = descs(shapes);
      for (TensorDesc& in : ins) in.dtype = dtype;
      EXPECT_EQ(op->infer(ins).back().dtype, wide) << op->kind() << " of " << to_string(dtype);
    }
}

TEST(Infer, RefusesWhatDoesNotFit) {
  const std::pair<OpPtr, std::vector<Shape>> rows[] = {
      {std::make_shared<LinearOp>(), {{kB, kN, kD}}},
      {std::make_shared<LinearOp>(), {{kB, kN, kD}, {{'F', 3}, {'D', 9}}}},
      {std::make_shared<AddOp>(), {{kB, kD}, {kB, kN, kD}}},
      {std::make_shared<AverageOp>(), {{kB, kD}}},
      {std::make_shared<AverageOp>(), {{kB, kD}, {kB, kN, kD}}},
      {std::make_shared<BiasOp>(), {{kB, kN, kD}, {kN}}},
      {std::make_shared<ScaleOp>(), {{kB, kN, kD}, {{'D', 7}}}},
      {std::make_shared<LayernormOp>(1e-6), {{kB, kN, kD}, {kD}}},
      {std::make_shared<LayernormOp>(1e-6), {{kB, kN, kH}, {kH}, {kH}}},
      {std::make_shared<SoftmaxOp>(), {{kB, kN, kD}}},
      {std::make_shared<AttentionOp>(), {{kB, kN, kT2, kH, kE}}},
      {std::make_shared<AttentionOp>(), {{{'S', 1}, kH, {'E', 5}}, {kB, kN, kT2, kH, kE}}},
      {std::make_shared<AttentionOp>(), {{kH, kE}, {kB, kN, kT2, kH, kE}}},
      {std::make_shared<AttentionOp>(QueryScope::kClassToken), {{{'S', 1}, kH, kE}, {kB, kN, kT2, kH, kE}}},
      {std::make_shared<ConcatTokensOp>(), {{kD}, {kB, kN, kD}}},
      {std::make_shared<ConcatTokensOp>(), {{{'S', 1}, kD, kE}, {kB, kN, kD}}},
      {std::make_shared<LinearOp>(), {{kB, {'D', 0}}, {{'F', 3}, {'D', 0}}}},
      {std::make_shared<QkNormOp>(1e-6), {{kB, kN, kT2, kH, kE}, {kE}, {kE}, {kE}, {kE}}},
      {std::make_shared<PatchEmbedOp>(),
       {{kB, {'C', 3}, {'Y', 3}, {'X', 8}}, {kD, {'C', 3}, {'P', 4}, {'Q', 4}}}},
      {std::make_shared<PatchEmbedOp>(),
       {{kB, {'C', 1}, {'Y', 8}, {'X', 8}}, {kD, {'C', 3}, {'P', 4}, {'Q', 4}}}},
      {std::make_shared<ConcatTokensOp>(), {{kB, kN, kD}}},
      {std::make_shared<ConcatTokensOp>(), {{{'S', 1}, {'D', 9}}, {kB, kN, kD}}},
      {std::make_shared<SelectTokenOp>(5), {{kB, kN, kD}}},
      {std::make_shared<MeanTokensOp>(5), {{kB, kN, kD}}},
      {std::make_shared<MaxTokensOp>(5), {{kB, kN, kD}}},
      {std::make_shared<SelfAttentionOp>(3), {{kB, kN, kD}}},
      {std::make_shared<SelfAttentionOp>(0), {{kB, kN, kD}}},
      {std::make_shared<SelfAttentionOp>(2), {{kB, kD}}},
      {std::make_shared<SelfAttentionGradOp>(2), {{kB, kN, kD}, {kB, kD}}},
      {std::make_shared<MaxTokensGradOp>(1), {{kB, kN, kD}, {kB, {'D', 9}}}},
      {std::make_shared<RmsnormOp>(1e-6), {{kB, kN, kD}, {{'D', 9}}}},
      {std::make_shared<RmsnormGradOp>(1e-6, true), {{kB, kN, kD}, {kD}, {kB, kN, {'D', 9}}}},
      {std::make_shared<QkRmsnormOp>(1e-6), {{kB, kN, kT2, kH, kE}, {kE}, {kE}}},
      {std::make_shared<QkRmsnormOp>(1e-6), {{kB, kN, kT3, kH, kE}, {kE}, {kD}}},
      {std::make_shared<QkRmsnormGradOp>(1e-6, true),
       {{kB, kN, kT3, kH, kE}, {kE}, {kE}, {kB, kN, kT2, kH, kE}}},
      {std::make_shared<ActivateGradOp>(ActKind::kRelu), {{kB, kN, kD}, {kB, kN, {'D', 9}}}},
      {std::make_shared<DropTokensOp>(5), {{kB, kN, kD}}},
      {std::make_shared<SincosPositionsOp>(2, 2, 6, DType::kF32), {}},
      {std::make_shared<LoadParamOp>(TensorDesc{DType::kF32, {kD}}), {{{'D', 9}}}},
      {std::make_shared<LinearDxOp>(), {{kB, kN, kD}, {{'F', 3}, kD}}},
      {std::make_shared<LinearDwOp>(), {{kB, kN, kD}, {{'B', 3}, kN, {'F', 3}}}},
      {std::make_shared<PatchEmbedDwOp>(4, 4), {{kB, {'C', 3}, {'Y', 8}, {'X', 12}}, {kB, kN, kD}}},
      {std::make_shared<AttentionGradOp>(), {{kB, kN, kT3, kH, kE}}},
      {std::make_shared<AttentionGradOp>(QueryScope::kClassToken), {{kB, kN, kT3, kH, kE}, {kB, kN, kH, kE}}},
      {std::make_shared<AttentionGradOp>(), {{kB, kN, kT3, kH, kE}, {kB, kN, kH, {'E', 5}}}},
      {std::make_shared<LayernormGradOp>(1e-6, true), {{kB, kN, kD}, {{'D', 9}}, {kB, kN, kD}}},
      {std::make_shared<GeluGradOp>(true), {{kB, kD}, {kB, kN, kD}}},
      {std::make_shared<GeluSlopeGradOp>(), {{kB, kD}, {kB, kN, kD}}},
      {std::make_shared<SumRowsOp>(4), {{kB, kN, kD}}},
      {std::make_shared<SumTokensOp>(3, 3), {{kB, kN, kD}}},
      {std::make_shared<CrossEntropyOp>(LossKind::kSoftmax), {{kB, kD}, {kB, kD}}},
      {std::make_shared<CrossEntropyOp>(LossKind::kSoftmax), {{kB, {'K', 3}}, {kB, {'K', 4}}}},
      {std::make_shared<DropoutOp>(0.5, DropUnit::kElement, 1), {{kB, kD}, {{'Z', 3}}}},
      {std::make_shared<AccumulateOp>(), {{kB, kD}, {kD}}},
      {std::make_shared<CopyIntoOp>(), {{kB, kD}, {kD}}},
  };
  for (const auto& [op, ins] : rows) EXPECT_THROW(op->infer(descs(ins)), Error) << op->kind();
}

// One input more than there are would otherwise be passed over in silence.
TEST(Infer, RefusesOneInputTooMany) {
  const std::pair<OpPtr, std::vector<Shape>> rows[] = {
      {std::make_shared<SelectTokenOp>(1), {{kB, kN, kD}}},
      {std::make_shared<MeanTokensOp>(1), {{kB, kN, kD}}},
      {std::make_shared<MaxTokensOp>(1), {{kB, kN, kD}}},
      {std::make_shared<SelfAttentionOp>(2), {{kB, kN, kD}}},
      {std::make_shared<DropTokensOp>(2), {{kB, kN, kD}}},
      {std::make_shared<SelectTokenGradOp>(1, kN), {{kB, kD}}},
      {std::make_shared<DropTokensGradOp>(2), {{kB, kN, kD}}},
      {std::make_shared<SumTokensOp>(1, 3), {{kB, kN, kD}}},
      {std::make_shared<SoftmaxOp>(), {{kB, {'K', 10}}}},
      {std::make_shared<GeluOp>(false), {{kB, kN, kD}}},
      {std::make_shared<LinearOp>(), {{kB, kN, kD}, {{'F', 3}, kD}}},
      {std::make_shared<AddOp>(), {{kB, kD}, {kB, kD}}},
  };
  for (const auto& [op, shapes] : rows) {
    std::vector<Shape> more = shapes;
    EXPECT_NO_THROW(op->infer(descs(more))) << op->kind();
    more.push_back(shapes[0]);
    EXPECT_THROW(op->infer(descs(more)), Error) << op->kind();
  }
}

TEST(Infer, ImagesComeFromPixelsOfTheirSize) {
  const MakeImagesOp op(DType::kBF16);
  const TensorDesc pixels{DType::kU8, {{'R', 9}, {'Y', 4}, {'X', 6}, {'C', 3}}},
      recipes{DType::kI32, {kB, {'Z', kRecipeWords}}}, levels{DType::kF32, {{'C', 3}, {'Z', 256}}};
  EXPECT_EQ(to_string(op.infer(std::vector{pixels, recipes, levels})[0]), "bf16[B2 C3 Y4 X6]");
  const TensorDesc floats{DType::kF32, pixels.shape}, short_recipes{DType::kI32, {kB, {'Z', 7}}},
      grey{DType::kF32, {{'C', 1}, {'Z', 256}}};
  for (const std::vector<TensorDesc>& wrong : {std::vector{floats, recipes, levels},
                                               {pixels, short_recipes, levels},
                                               {pixels, recipes, grey},
                                               {pixels, recipes}})
    EXPECT_THROW(op.infer(wrong), Error);
}

// The gradient of a residual stream keeps the stream's type beside a norm that computed in fewer bits.
TEST(Infer, TheGradientOfANormWithAResidualHasTheWiderType) {
  const Dim b('B', 2), d('D', 8);
  const TensorDesc narrow{DType::kBF16, {b, d}}, row{DType::kBF16, {d}}, wide{DType::kF32, {b, d}};
  const LayernormGradOp op(1e-6, false, true);
  EXPECT_EQ(op.infer(std::vector{narrow, row, narrow, wide})[0].dtype, DType::kF32);
  EXPECT_EQ(op.infer(std::vector{narrow, row, narrow, narrow})[0].dtype, DType::kBF16);
}

TEST(Infer, SumsOfNarrowGradientsAreWide) {
  const Dim e('E', 8);
  const TensorDesc qkv{DType::kBF16, {{'B', 2}, {'N', 3}, {'T', 3}, {'H', 2}, e}}, row{DType::kBF16, {e}};
  const std::vector<TensorDesc> grads = QkNormGradOp(1e-6, true).infer(std::vector{qkv, row, row, qkv});
  EXPECT_EQ(grads[0].dtype, DType::kBF16);
  for (size_t i = 1; i < grads.size(); ++i) EXPECT_EQ(grads[i].dtype, DType::kF32) << i;
}

// A count of overflows is read where the loss scale waits for several of them, and nowhere else.
TEST(Infer, OnlyAStepThatCountsOverflowsTakesTheirCount) {
  const TensorDesc hyper = hyper_desc(), one{hyper.dtype, {{'Z', 1}}};
  std::vector<TensorDesc> ins = {one, hyper, one, {hyper.dtype, {{'Z', kUpdateCounters}}}};
  const StepControlOp plain(1.0, LossScaleRule{.dynamic = true}),
      counting(1.0, LossScaleRule{.dynamic = true, .hysteresis = 2});
  EXPECT_NO_THROW(plain.infer(ins));
  EXPECT_THROW(counting.infer(ins), Error);
  ins.push_back(one);
  EXPECT_THROW(plain.infer(ins), Error);
  EXPECT_NO_THROW(counting.infer(ins));
}

}  // namespace
}  // namespace vitrail
