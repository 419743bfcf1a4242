#include "backend/cpu_op_cases.h"

#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "ops/qk_norm.h"
#include "ops/scale.h"
#include "ops/update/adam.h"
#include "ops/update/control.h"
#include "ops/update/ema.h"
#include "ops/update/lamb.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail::testing {

TensorDesc f32(Shape shape) {
  return {DType::kF32, std::move(shape)};
}

namespace {

OpPtr summed(OpPtr op) {
  const int inputs = is<SumRowsOp, SumTokensOp>(*op) ? 1 : 2;
  std::vector<FusedOp::Source> sources = {0};
  if (inputs == 2) sources.emplace_back(1);
  return std::make_shared<FusedOp>(std::vector<FusedOp::Member>{
      {std::move(op), sources}, {std::make_shared<AccumulateOp>(), {inputs, made_by(0)}}});
}

const TensorDesc kTokens = f32({{'B', 3}, {'N', 17}, {'D', 40}}), kVector = f32({{'B', 3}, {'D', 40}}),
                 kRow = f32({{'D', 40}}), kHidden = f32({{'B', 3}, {'N', 17}, {'F', 50}}),
                 kWeight = f32({{'F', 50}, {'D', 40}}),
                 kQkv = f32({{'B', 2}, {'N', 21}, {'T', 3}, {'H', 3}, {'E', 24}}), kHead = f32({{'E', 24}}),
                 kImage = f32({{'B', 2}, {'C', 3}, {'Y', 8}, {'X', 12}}),
                 kControl{DType::kF64, {{'Z', kControlCount}}},
                 kCounters{DType::kI64, {{'Z', kCounterCount}}};

std::vector<OpCase> gemm_cases() {
  const TensorDesc patches = f32({{'B', 2}, {'N', 6}, {'D', 40}}),
                   patch_weight = f32({{'D', 40}, {'C', 3}, {'P', 4}, {'Q', 4}}),
                   positions = f32({{'N', 17}, {'D', 40}});
  const auto linear = std::make_shared<LinearOp>();
  const auto dw = std::make_shared<LinearDwOp>();
  const auto patch_dw = std::make_shared<PatchEmbedDwOp>(4, 4);
  return {
      {"linear", linear, {kTokens, kWeight}, 40},
      {"patch_embed", std::make_shared<PatchEmbedOp>(), {kImage, patch_weight}, 48},
      {"linear_dx", std::make_shared<LinearDxOp>(), {kHidden, kWeight}, 50},
      {"linear_dw", dw, {kTokens, kHidden}, 51},
      {"linear_dw_added", summed(dw), {kTokens, kHidden, kWeight}, 51},
      {"patch_embed_dw", patch_dw, {kImage, patches}, 12},
      {"patch_embed_dw_added", summed(patch_dw), {kImage, patches, patch_weight}, 12},
      {"sum_rows", std::make_shared<SumRowsOp>(1), {kTokens}, 51},
      {"sum_positions", std::make_shared<SumRowsOp>(2), {kTokens}, 3},
      {"sum_positions_added", summed(std::make_shared<SumRowsOp>(2)), {kTokens, positions}, 3},
      {"scale_dw", std::make_shared<ScaleDwOp>(1), {kTokens, kTokens}, 51},
      {"scale_dw_added", summed(std::make_shared<ScaleDwOp>(1)), {kTokens, kTokens, kRow}, 51},
      {"attention_grad",
       std::make_shared<AttentionGradOp>(),
       {kQkv, f32({{'B', 2}, {'N', 21}, {'H', 3}, {'E', 24}})},
       24},
      {"attention_first_grad",
       std::make_shared<AttentionGradOp>(QueryScope::kClassToken),
       {kQkv, f32({{'B', 2}, {'H', 3}, {'E', 24}})},
       24},
  };
}

std::vector<OpCase> row_cases() {
  const auto layernorm = [](bool parameters) { return std::make_shared<LayernormGradOp>(1e-2, parameters); };
  return {
      {"layernorm_grad", layernorm(true), {kTokens, kRow, kTokens}, 51},
      {"layernorm_dx", layernorm(false), {kTokens, kRow, kTokens}, 40},
      {"qk_norm_grad", std::make_shared<QkNormGradOp>(1e-2, true), {kQkv, kHead, kHead, kQkv}, 126},
      {"qk_norm_dx", std::make_shared<QkNormGradOp>(1e-2, false), {kQkv, kHead, kHead, kQkv}, 24},
      {"gelu_grad_erf", std::make_shared<GeluGradOp>(false), {kTokens, kTokens}, 16},
      {"gelu_grad_tanh", std::make_shared<GeluGradOp>(true), {kTokens, kTokens}, 16},
      {"tanh_grad", std::make_shared<TanhGradOp>(), {kTokens, kTokens}},
      {"multiply", std::make_shared<MultiplyOp>(0.3), {kTokens}},
      {"scale_by", std::make_shared<ScaleByOp>(), {kTokens, kControl}},
      {"dropout", std::make_shared<DropoutOp>(0.4, DropUnit::kElement, 9), {kTokens, kCounters}},
      {"drop_images", std::make_shared<DropoutOp>(0.4, DropUnit::kSample, 9), {kTokens, kCounters}},
  };
}

std::vector<OpCase> move_cases() {
  const Dim tokens('N', 17);
  const TensorDesc fewer = f32({{'B', 3}, {'N', 15}, {'D', 40}}), prefix = f32({{'S', 2}, {'D', 40}});
  const auto sum_tokens = std::make_shared<SumTokensOp>(1, 2);
  return {
      {"accumulate", std::make_shared<AccumulateOp>(), {kTokens, kTokens}},
      {"copy_into", std::make_shared<CopyIntoOp>(), {kTokens, kTokens}},
      {"cast", std::make_shared<CastOp>(DType::kBF16), {kTokens}},
      {"concat_tokens", std::make_shared<ConcatTokensOp>(), {prefix, f32({{'S', 1}, {'D', 40}}), kTokens}},
      {"sum_tokens", sum_tokens, {kTokens}, 3},
      {"sum_tokens_added", summed(sum_tokens), {kTokens, prefix}, 3},
      {"select_token", std::make_shared<SelectTokenOp>(3), {kTokens}},
      {"select_token_grad", std::make_shared<SelectTokenGradOp>(3, tokens), {kVector}},
      {"mean_tokens_grad", std::make_shared<MeanTokensGradOp>(2, tokens), {kVector}},
      {"drop_tokens", std::make_shared<DropTokensOp>(2), {kTokens}},
      {"drop_tokens_grad", std::make_shared<DropTokensGradOp>(2), {fewer}},
  };
}

}  // namespace

std::vector<OpCase> update_cases() {
  const TensorDesc hyper{DType::kF64, {{'Z', kHyperCount}}}, w = f32({{'F', 131}, {'D', 129}});
  const UpdateScale decoupled{.weight_decay = 0.1},
      coupled{.weight_decay = 0.1, .decay = DecayStyle::kCoupled};
  const Moments moments;
  return {
      {"square_sum", std::make_shared<SquareSumOp>(), {w, kRow, kWeight}},
      {"sgd", std::make_shared<SgdUpdateOp>(coupled, 0, false), {w, w, kControl}},
      {"sgd_momentum", std::make_shared<SgdUpdateOp>(coupled, 0.9, false), {w, w, w, kControl}},
      {"sgd_nesterov", std::make_shared<SgdUpdateOp>(decoupled, 0.9, true), {w, w, w, kControl}},
      {"adam", std::make_shared<AdamUpdateOp>(coupled, moments), {w, w, w, w, kControl}},
      {"adamw", std::make_shared<AdamUpdateOp>(decoupled, moments), {w, w, w, w, kControl}},
      {"lamb", std::make_shared<LambUpdateOp>(coupled, moments, true), {w, w, w, w, kControl}},
      {"lion", std::make_shared<LionUpdateOp>(decoupled, 0.9, 0.99), {w, w, w, kControl}},
      {"ema", std::make_shared<EmaUpdateOp>(false), {w, w, hyper, kControl}},
  };
}

std::vector<OpCase> training_cases() {
  std::vector<OpCase> all;
  for (const auto& cases : {gemm_cases(), row_cases(), move_cases(), update_cases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

}  // namespace vitrail::testing
