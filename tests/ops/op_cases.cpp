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
#include "ops/tanh.h"

namespace vitrail {

namespace {

template <typename T, typename... Args>
OpPtr op(Args... args) {
  return std::make_shared<T>(args...);
}

void add_products(std::vector<OpCase>& cases) {
  for (int64_t tokens : {1, 5, 50, 65, 197}) {
    const Dim b('B', 2), n('N', tokens), d('D', 48), f('F', 100), h('H', 3), e('E', 16);
    const std::string suffix = "_" + std::to_string(tokens);
    cases.push_back({"linear" + suffix, op<LinearOp>(), {{b, n, d}, {f, d}}, {false, true}});
    cases.push_back({"linear_qkv" + suffix, op<LinearOp>(), {{b, n, d}, {{'T', 3}, h, e, d}}, {false, true}});
    cases.push_back({"linear_proj" + suffix, op<LinearOp>(), {{b, n, h, e}, {d, h, e}}, {false, true}});
    cases.push_back({"attention" + suffix, op<AttentionOp>(), {{b, n, {'T', 3}, h, e}}, {false}});
    cases.push_back(
        {"attention_odd_head" + suffix, op<AttentionOp>(), {{b, n, {'T', 3}, h, {'E', 18}}}, {false}});
    cases.push_back({"attention_probe" + suffix,
                     op<AttentionOp>(),
                     {{{'S', 1}, h, e}, {b, n, {'T', 2}, h, e}},
                     {false, false}});
    cases.push_back({"attention_probs" + suffix, op<AttentionProbsOp>(), {{b, n, {'T', 3}, h, e}}, {false}});
    cases.push_back(
        {"layernorm" + suffix, op<LayernormOp>(1e-6), {{b, n, d}, {d}, {d}}, {false, true, true}});
  }
  for (int64_t patch : {1, 7, 16})
    for (int64_t channels : {1, 3, 8})
      cases.push_back({"patch_embed_" + std::to_string(patch) + "_channels" + std::to_string(channels),
                       op<PatchEmbedOp>(),
                       {{{'B', 2}, {'C', channels}, {'Y', 3 * patch}, {'X', 5 * patch}},
                        {{'D', 24}, {'C', channels}, {'P', patch}, {'Q', patch}}},
                       {false, true}});
}

void add_small_ops(std::vector<OpCase>& cases) {
  const Dim b('B', 2), n('N', 17), d('D', 50), e('E', 16);
  const Shape x = {b, n, d};
  for (bool tanh_form : {false, true})
    cases.push_back({tanh_form ? "gelu_tanh" : "gelu_erf", op<GeluOp>(tanh_form), {x}, {false}});
  cases.push_back({"tanh", op<TanhOp>(), {x}, {false}});
  cases.push_back({"bias", op<BiasOp>(), {x, {d}}, {false, true}});
  cases.push_back({"bias_positions", op<BiasOp>(), {x, {n, d}}, {false, true}});
  cases.push_back({"scale", op<ScaleOp>(), {x, {d}}, {false, true}});
  cases.push_back({"add", op<AddOp>(), {x, x}, {false, false}});
  cases.push_back({"average", op<AverageOp>(), {x, x}, {false, false}});
  cases.push_back({"softmax", op<SoftmaxOp>(), {{b, {'K', 1000}}}, {false}});
  cases.push_back({"select_token", op<SelectTokenOp>(3), {x}, {false}});
  cases.push_back({"drop_tokens", op<DropTokensOp>(2), {x}, {false}});
  cases.push_back({"mean_tokens", op<MeanTokensOp>(2), {x}, {false}});
  cases.push_back(
      {"concat_tokens", op<ConcatTokensOp>(), {{{'S', 1}, d}, {{'S', 4}, d}, x}, {true, true, false}});
  cases.push_back({"qk_norm",
                   op<QkNormOp>(1e-6),
                   {{b, n, {'T', 3}, {'H', 3}, e}, {e}, {e}, {e}, {e}},
                   {false, true, true, true, true}});
}

// The shapes in which the fuse pass joins a product with its neighbours.
void add_fused(std::vector<OpCase>& cases) {
  const Dim b('B', 2), n('N', 65), d('D', 48), f('F', 100);
  const Shape x = {b, n, d};
  const FusedOp::Member norm{op<LayernormOp>(1e-6), {0, 1, 2}};
  cases.push_back({"fused_norm_linear_bias_gelu",
                   std::make_shared<FusedOp>(std::vector<FusedOp::Member>{
                       norm, {op<LinearOp>(), {~0, 3}}, {op<BiasOp>(), {~1, 4}}, {op<GeluOp>(false), {~2}}}),
                   {x, {d}, {d}, {f, d}, {f}},
                   {false, true, true, true, true}});
  cases.push_back({"fused_linear_bias_scale_add",
                   std::make_shared<FusedOp>(std::vector<FusedOp::Member>{{op<LinearOp>(), {0, 1}},
                                                                          {op<BiasOp>(), {~0, 2}},
                                                                          {op<ScaleOp>(), {~1, 3}},
                                                                          {op<AddOp>(), {4, ~2}}}),
                   {{b, n, f}, {d, f}, {d}, {d}, x},
                   {false, true, true, true, false}});
  cases.push_back({"fused_gelu_bias_without_kernel",
                   std::make_shared<FusedOp>(
                       std::vector<FusedOp::Member>{{op<GeluOp>(true), {0}}, {op<BiasOp>(), {~0, 1}}}),
                   {x, {d}},
                   {false, true}});
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  add_products(cases);
  add_small_ops(cases);
  add_fused(cases);
  return cases;
}

}  // namespace vitrail
