// What ops say of themselves, as tables: attributes, work, the length of sums, what they write and overwrite,
// and the last shapes that they accept.
#include <gtest/gtest.h>

#include "ops/activate.h"
#include "ops/attention_bias_grad.h"
#include "ops/attention_sums.h"
#include "ops/collective.h"
#include "ops/concat_tokens.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/empty_parts.h"
#include "ops/flat.h"
#include "ops/fused.h"
#include "ops/gelu_slope.h"
#include "ops/grouped.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/max_tokens.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "ops/qk_norm.h"
#include "ops/qk_rmsnorm.h"
#include "ops/residual_rows.h"
#include "ops/rmsnorm.h"
#include "ops/scale.h"
#include "ops/sincos_positions.h"
#include "ops/softmax.h"
#include "ops/turn.h"
#include "ops/update/control.h"
#include "ops/update/copied.h"
#include "ops/update/ema.h"
#include "ops/update/lamb_parts.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail::op_facts {
namespace {

const Dim kImages('B', 2), kTokens('N', 5), kWidth('D', 8), kHeads('H', 2), kHead('E', 4), kQkv('T', 3),
    kClasses('K', 10);
const Shape kRows{kImages, kTokens, kWidth}, kRow{kWidth}, kPacked{kImages, kTokens, kQkv, kHeads, kHead},
    kHeadRows{kImages, kTokens, kHeads, kHead}, kScores{kImages, kClasses};

Dim part_of(char name, int64_t extent, int64_t local, int64_t offset) {
  Dim dim(name, extent);
  dim.local = local, dim.offset = offset;
  return dim;
}

std::vector<TensorDesc> in_f32(const std::vector<Shape>& shapes) {
  std::vector<TensorDesc> result;
  result.reserve(shapes.size());
  for (const Shape& shape : shapes) result.push_back({DType::kF32, shape});
  return result;
}

template <typename T, typename... Arguments>
OpPtr op(Arguments&&... arguments) {
  return std::make_shared<T>(std::forward<Arguments>(arguments)...);
}

CollectiveOp exchange(CollectiveKind kind, bool started = false, int peer = 0, int channel = 0) {
  return CollectiveOp(
      {.kind = kind, .axes = Axis::kTensor, .started = started, .peer = peer, .channel = channel});
}

const UpdateScale kSteady{1, 0, DecayStyle::kCoupled, 0.1}, kDecaying{0.5, 0.3, DecayStyle::kDecoupled, 0.1};

TEST(OpFacts, AttributesSayWhatChangesTheResult) {
  const std::pair<OpPtr, const char*> rows[] = {
      {op<LinearOp>(), ""},
      {op<LinearOp>(Arithmetic::kFp8), "arithmetic=fp8"},
      {op<LinearDxOp>(Arithmetic::kTF32), "arithmetic=tf32"},
      {op<LinearDwOp>(Arithmetic::kTF32), "arithmetic=tf32"},
      {op<AttentionOp>(), ""},
      {op<AttentionOp>(QueryScope::kClassToken), "queries=class_token"},
      {op<AttentionGradOp>(QueryScope::kClassToken), "queries=class_token"},
      {op<GeluOp>(true), "tanh"},
      {op<GeluOp>(false), "erf"},
      {op<GeluGradOp>(false, true), "erf sums"},
      {op<GeluGradOp>(true), "tanh"},
      {op<GeluSlopeOp>(true), "tanh"},
      {op<GeluSlopeGradOp>(true), "sums"},
      {op<GeluSlopeGradOp>(), ""},
      {op<ActivateOp>(ActKind::kRelu), "relu"},
      {op<ActivateGradOp>(ActKind::kRelu), "relu"},
      {op<LayernormOp>(1e-6), "eps=1e-06"},
      {op<LayernormOp>(0.5, DType::kBF16), "eps=0.5 to bf16"},
      {op<LayernormGradOp>(1e-5, true), "eps=1e-05"},
      {op<LayernormGradOp>(1e-5, true, true, true, DType::kF16), "eps=1e-05 residual sums and f16"},
      {op<RmsnormOp>(0.25), "eps=0.25"},
      {op<RmsnormGradOp>(0.25, true), "eps=0.25"},
      {op<RmsnormOp>(0.25, true), "eps=0.25 simple"},
      {op<RmsnormGradOp>(0.25, true, true), "eps=0.25 simple"},
      {op<QkRmsnormOp>(0.25, true), "eps=0.25 simple"},
      {op<QkRmsnormGradOp>(0.25, true), "eps=0.25"},
      {op<QkNormOp>(0.25), "eps=0.25"},
      {op<QkNormGradOp>(0.25, true), "eps=0.25"},
      {op<ResidualRowsOp>(ResidualRowsOp::Form{}), ""},
      {op<ResidualRowsOp>(ResidualRowsOp::Form{true, true, true, 0.5}), "bias scale norm eps=0.5"},
      {op<ResidualRowsOp>(ResidualRowsOp::Form{false, true, false, 0.5}), "scale"},
      {op<DropoutOp>(0.25, DropUnit::kElement, 1), "p=0.25"},
      {op<DropoutOp>(0.25, DropUnit::kSample, 1), "p=0.25 samples"},
      {op<MultiplyOp>(0.5), "0.5"},
      {op<SelectTokenOp>(3), "index=3"},
      {op<MeanTokensOp>(2), "first=2"},
      {op<DropTokensOp>(2), "first=2"},
      {op<SelectTokenGradOp>(3, kTokens), "index=3"},
      {op<MeanTokensGradOp>(2, kTokens), "first=2"},
      {op<DropTokensGradOp>(2), "first=2"},
      {op<MaxTokensOp>(1), "first=1"},
      {op<MaxTokensGradOp>(1), "first=1"},
      {op<SumTokensOp>(1, 3), "first=1"},
      {op<CrossEntropyOp>(LossKind::kSigmoidMean), "bce_mean"},
      {op<CrossEntropyGradOp>(LossKind::kDivergence), "divergence"},
      {op<SincosPositionsOp>(2, 3, 8, DType::kF32), "grid=2x3"},
      {op<PackOp>('N', std::vector<int64_t>{0, 5}), "N"},
      {op<SliceOp>(part_of('D', 8, 3, 2)), "D 2..5"},
      {op<ViewOp>(7, kRow), "7"},
      {op<CollectiveOp>(exchange(CollectiveKind::kAllReduce)), "tp"},
      {op<CollectiveOp>(exchange(CollectiveKind::kAllGather, true)), "tp started"},
      {op<CollectiveOp>(exchange(CollectiveKind::kSend, false, 3)), "tp=3"},
      {op<CollectiveOp>(exchange(CollectiveKind::kReceive, true, 2, 1)), "tp=2 back started"},
      {op<TurnOp>(TurnOp::Form{.backward = true, .chunk = 2, .micro = 5}), "backward chunk 2 micro-batch 5"},
      {op<TurnOp>(TurnOp::Form{.chunk = 0, .micro = 1}), "forward chunk 0 micro-batch 1"},
      {op<SgdUpdateOp>(kSteady, 0.9, true), "lr*1 momentum=0.9 nesterov"},
      {op<SgdUpdateOp>(kDecaying, 0.0, false), "lr*0.5 wd=0.3 decoupled momentum=0"},
      {op<AdamUpdateOp>(kSteady, Moments{0.8, 0.9, 1e-3}), "lr*1 betas=0.8,0.9 eps=0.001"},
      {op<AdamUpdateOp>(kSteady, Moments{0.8, 0.9, 1e-3, false}),
       "lr*1 betas=0.8,0.9 eps=0.001 not corrected"},
      {op<LambUpdateOp>(kSteady, Moments{0.8, 0.9, 1e-3}, false), "lr*1 betas=0.8,0.9 eps=0.001 not adapted"},
      {op<LionUpdateOp>(kSteady, 0.8, 0.9), "lr*1 betas=0.8,0.9"},
      {op<EmaUpdateOp>(true), "warm-up"},
      {op<EmaUpdateOp>(false), ""},
      {op<StepControlOp>(0, LossScaleRule{}), "no clip"},
      {op<StepControlOp>(1.5, LossScaleRule{.dynamic = true}), "clip=1.5, dynamic loss scale"},
      {op<FusedOp>(std::vector<FusedOp::Member>{{op<LayernormOp>(0.5), {0, 1, 2}},
                                                {op<LinearOp>(), {made_by(0), 3}},
                                                {op<GeluOp>(false), {made_by(1)}}},
                   1),
       "eps=0.5 erf keeps linear"},
      {op<GroupedOp>(std::vector<GroupedOp::Part>{{op<AccumulateOp>(), 0, 2}, {op<AccumulateOp>(), 2, 2}}),
       "2 parts"}};
  for (const auto& [one, text] : rows) EXPECT_EQ(one->attributes(), text) << one->kind();
}

struct WorkRow {
  OpPtr op;
  std::vector<Shape> ins;
  double flops;
  int64_t longest;  // sum; 0: not told
};

TEST(OpFacts, WorkAndTheLongestSum) {
  const Shape weight{{'F', 3}, kWidth}, images{kImages, {'C', 3}, {'Y', 8}, {'X', 12}};
  const OpPtr norm_gemm = op<FusedOp>(std::vector<FusedOp::Member>{
      {op<LayernormOp>(0.5), {0, 1, 2}}, {op<LinearOp>(), {made_by(0), 3}}, {op<AddOp>(), {4, made_by(1)}}});
  const WorkRow rows[] = {
      {op<GeluOp>(true), {kRows}, 10 * 80, 1},
      {op<GeluGradOp>(true), {kRows, kRows}, 16 * 80, 1},
      {op<GeluGradOp>(true, true), {kRows, kRows}, 16 * 80, 10},
      {op<GeluSlopeOp>(true), {kRows}, 16 * 80, 1},
      {op<GeluSlopeGradOp>(true), {kRows, kRows}, 80 + 8, 10},
      {op<TanhOp>(), {kRows}, 80, 1},
      {op<TanhGradOp>(), {kRows, kRows}, 3 * 80, 1},
      {op<AddOp>(), {kRows, kRows}, 80, 1},
      {op<AverageOp>(), {kRows, kRows}, 2 * 80, 1},
      {op<MultiplyOp>(2), {kRows}, 80, 1},
      {op<CastOp>(DType::kBF16), {kRows}, 0, 1},
      {op<ActivateGradOp>(ActKind::kRelu), {kRows, kRows}, 6 * 80, 1},
      {op<LayernormOp>(0.5), {kRows, kRow, kRow}, 8 * 80, 8},
      {op<RmsnormOp>(0.5), {kRows, kRow}, 4 * 80, 8},
      {op<RmsnormGradOp>(0.5, true), {kRows, kRow, kRows}, 10 * 80, 10},
      {op<QkRmsnormOp>(0.5), {kPacked, {kHead}, {kHead}}, 8.0 / 3 * 240, 0},
      {op<QkRmsnormGradOp>(0.5, true), {kPacked, {kHead}, {kHead}, kPacked}, 20.0 / 3 * 240, 60},
      {op<QkNormOp>(0.5), {kPacked, {kHead}, {kHead}, {kHead}, {kHead}}, 16.0 / 3 * 240, 0},
      {op<QkNormGradOp>(0.5, true), {kPacked, {kHead}, {kHead}, kPacked}, 32.0 / 3 * 240, 60},
      {op<ResidualRowsOp>(ResidualRowsOp::Form{}), {kRows, kRows}, 80, 1},
      {op<ResidualRowsOp>(ResidualRowsOp::Form{true, true, true, 0.5}),
       {kRows, kRow, kRow, kRows, kRow, kRow},
       11 * 80,
       8},
      {op<ScaleOp>(), {kRows, kRow}, 80, 1},
      {op<SoftmaxGradOp>(), {kScores, kScores}, 4 * 20, 10},
      {op<AttentionOp>(), {kPacked}, 2.0 * 2 * 25 * 21, 5},
      {op<AttentionProbsOp>(), {kPacked}, 100 * 13, 5},
      {op<AttentionSumsOp>(), {kPacked}, 2.0 * 2 * 25 * 21, 5},
      {op<AttentionSumsGradOp>(), {kPacked, kHeadRows, {kImages, kHeads, kTokens}, kHeadRows}, 100 * 50, 5},
      {op<AttentionBiasGradOp>(), {kPacked, kHeadRows}, 100 * 50 + 240, 10},
      {op<PatchEmbedOp>(), {images, {kWidth, {'C', 3}, {'P', 4}, {'Q', 4}}}, 2.0 * 2 * 6 * 8 * 48, 48},
      {op<MeanTokensOp>(1), {kRows}, 80, 5},
      {op<SumTokensOp>(2, 3), {kRows}, 48, 2},
      {op<CrossEntropyGradOp>(LossKind::kSoftmax), {kScores, kScores, {kImages}}, 160, 10},
      {op<SquareSumOp>(), {kRows, kRow}, 2 * 88, 80},
      {norm_gemm, {kRows, kRow, kRow, weight, {kImages, kTokens, {'F', 3}}}, 640 + 480 + 30, 8},
      {op<GroupedOp>(std::vector<GroupedOp::Part>{{op<AccumulateOp>(), 0, 2}, {op<AccumulateOp>(), 2, 2}}),
       {kRows, kRows, kRow, kRow},
       88,
       1}};
  for (const WorkRow& row : rows) {
    const std::vector<TensorDesc> ins = in_f32(row.ins), outs = row.op->infer(ins);
    EXPECT_DOUBLE_EQ(row.op->flops(ins, outs), row.flops) << row.op->kind();
    if (row.longest > 0) {
      EXPECT_EQ(row.op->reduction_length(ins), row.longest) << row.op->kind();
    }
  }
}

// The first token's attention costs its keys and values in the width of the stream instead of a head's.
TEST(OpFacts, TheFirstTokensAttentionIsCheaper) {
  const std::vector<TensorDesc> descs = in_f32({kPacked, {kQkv, kHeads, kHead, kWidth}});
  EXPECT_DOUBLE_EQ(first_attention_flops(descs[0], descs[1]), 2 * (2.0 * 24 * 8 + 2 * 5 * (4 * 8 + 5.0)));
}

TEST(OpFacts, WhatIsWrittenAndOverwritten) {
  const OpPtr sum = op<FusedOp>(
      std::vector<FusedOp::Member>{{op<LinearDwOp>(), {0, 1}}, {op<AccumulateOp>(), {2, made_by(0)}}});
  const struct {
    OpPtr op;
    std::vector<int> updates;
    int in_place;
  } rows[] = {
      {op<AccumulateOp>(), {0}, -1},
      {op<CopyIntoOp>(), {0}, -1},
      {op<LossSumOp>(), {0}, -1},
      {op<SgdUpdateOp>(kSteady, 0.9, false), {0, 1, 2}, -1},
      {op<SgdUpdateOp>(kSteady, 0.0, false), {0, 1}, -1},
      {op<AdamUpdateOp>(kSteady, Moments{}), {0, 1, 2, 3}, -1},
      {op<LionUpdateOp>(kSteady, 0.9, 0.99), {0, 1, 2}, -1},
      {op<EmaUpdateOp>(false), {0}, -1},
      {op<LambMomentsOp>(LambUpdateOp(kSteady, Moments{}, true)), {1, 2, 3}, -1},
      {op<LambMoveOp>(LambUpdateOp(kSteady, Moments{}, true)), {0}, -1},
      {op<StepControlOp>(0, LossScaleRule{}), {2, 3}, -1},
      {op<StepControlOp>(0, LossScaleRule{.dynamic = true, .hysteresis = 2}), {2, 3, 4}, -1},
      {sum, {2}, -1},
      {op<GroupedOp>(std::vector<GroupedOp::Part>{{op<AccumulateOp>(), 0, 2}, {op<AccumulateOp>(), 2, 2}}),
       {0, 2},
       -1},
      {op<CollectiveOp>(CollectiveOp::Form{.in_place = true}), {0}, -1},
      {op<CollectiveOp>(CollectiveOp::Form{}), {}, 0},
      {op<CollectiveOp>(exchange(CollectiveKind::kAllGather)), {}, -1},
      {op<LayernormOp>(0.5), {}, 0},
      {op<LayernormGradOp>(0.5, true, true), {}, 3},
      {op<LayernormGradOp>(0.5, true), {}, -1},
      {op<GeluGradOp>(true), {}, 1},
      {op<SoftmaxGradOp>(), {}, 1},
      {op<TanhGradOp>(), {}, 1},
      {op<LinearOp>(), {}, -1},
      {op<AttentionOp>(), {}, -1}};
  for (const auto& row : rows) {
    const std::span<const int> updates = row.op->updates();
    EXPECT_EQ(std::vector(updates.begin(), updates.end()), row.updates) << row.op->kind();
    EXPECT_EQ(row.op->in_place_input(), row.in_place) << row.op->kind();
  }
}

TEST(OpFacts, TheLastShapesThatFit) {
  const Dim whole = part_of('D', 8, 4, 2);  // elements 2 to 5
  const std::pair<OpPtr, std::vector<Shape>> rows[] = {
      {op<SliceOp>(part_of('D', 8, 4, 2)), {{kImages, whole}}},
      {op<SumTokensOp>(2, 3), {kRows}},
      {op<SelectTokenOp>(4), {kRows}},
      {op<MeanTokensOp>(4), {kRows}},
      {op<MaxTokensOp>(4), {kRows}},
      {op<DropTokensOp>(4), {kRows}},
      {op<JoinOp>(std::vector<int64_t>{0, 8}, 16), {kRow, kRow}},
      {op<ViewOp>(72, kRow), {kRows}},
      {op<SumRowsOp>(3), {kRows}},
      {op<PatchEmbedOp>(),
       {{kImages, {'C', 3}, {'Y', 4}, {'X', 4}}, {kWidth, {'C', 3}, {'P', 4}, {'Q', 4}}}}};
  for (const auto& [one, ins] : rows) EXPECT_NO_THROW(one->infer(in_f32(ins))) << one->kind();
  const std::pair<OpPtr, std::vector<Shape>> beyond[] = {
      {op<SliceOp>(part_of('D', 8, 4, 3)), {{kImages, whole}}},
      {op<SliceOp>(part_of('D', 8, 4, 1)), {{kImages, whole}}},
      {op<SumTokensOp>(3, 3), {kRows}},
      {op<JoinOp>(std::vector<int64_t>{0, 7}, 16), {kRow, kRow}},
      {op<JoinOp>(std::vector<int64_t>{0, 8}, 15), {kRow, kRow}},
      {op<ViewOp>(73, kRow), {kRows}}};
  for (const auto& [one, ins] : beyond) EXPECT_THROW(one->infer(in_f32(ins)), Error) << one->kind();
}

TEST(OpFacts, EmptyPartsComputeNothing) {
  const Shape none{{'B', 0}, kWidth}, some{kImages, kWidth};
  const auto idle = [](const OpPtr& one, const std::vector<Shape>& ins, const std::vector<Shape>& outs) {
    return computes_nothing(*one, in_f32(ins), in_f32(outs));
  };
  EXPECT_THROW(SquareSumOp().infer({}), Error);
  EXPECT_TRUE(idle(op<TanhOp>(), {none}, {none}));
  EXPECT_FALSE(idle(op<TanhOp>(), {some}, {some}));
  EXPECT_FALSE(idle(op<AccumulateOp>(), {some, some}, {}));
  EXPECT_TRUE(idle(op<AccumulateOp>(), {none, none}, {}));
  EXPECT_TRUE(idle(op<LinearDwOp>(), {none, none}, {{{'F', 3}, kWidth}})) << "a sum of nothing";
  EXPECT_FALSE(idle(op<JoinOp>(std::vector<int64_t>{0, 0}, 8), {none, some}, {{kWidth}}));
}

}  // namespace
}  // namespace vitrail::op_facts
