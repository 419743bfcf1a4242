#include "op_cases.h"

#include <algorithm>
#include <tuple>

#include "base/rng.h"

#include "ops/activate.h"
#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/max_tokens.h"
#include "ops/patch_embed.h"
#include "ops/pool_tokens.h"
#include "ops/qk_norm.h"
#include "ops/rmsnorm.h"
#include "ops/scale.h"
#include "ops/self_attention.h"
#include "ops/sincos_positions.h"
#include "ops/softmax.h"

namespace vitrail {

namespace {

using enum Role;

// Queries that all images share, fewer than keys and more of them.
void add_shared_queries(std::vector<OpCase>& cases) {
  const struct {
    int64_t queries, keys, head;
  } shared[] = {{3, 65, 16}, {70, 65, 16}, {3, 145, 72}, {35, 70, 18}};
  for (const auto& [queries, keys, head] : shared)
    cases.push_back(
        {strf("attention_of_%lld_queries_and_%lld_keys", static_cast<long long>(queries),
              static_cast<long long>(keys)),
         make_op<AttentionOp>(),
         {{{'S', queries}, {'H', 2}, {'E', head}}, {{'B', 2}, {'N', keys}, {'T', 2}, {'H', 2}, {'E', head}}},
         {false, false}});
}

void add_attention(std::vector<OpCase>& cases) {
  const struct {
    int64_t tokens, head;
  } sizes[] = {{161, 64}, {197, 64}, {200, 40}, {208, 56}, {257, 64}, {290, 64}, {577, 64},
               {65, 80},  {40, 128}, {20, 144}, {100, 32}, {150, 24}, {70, 96}};
  for (const auto& [tokens, head] : sizes) {
    for (QueryScope queries : {QueryScope::kAllTokens, QueryScope::kClassToken})
      cases.push_back(
          {strf("attention%s_%lld_tokens_of_%lld", queries == QueryScope::kClassToken ? "_first" : "",
                static_cast<long long>(tokens), static_cast<long long>(head)),
           make_op<AttentionOp>(queries),
           {{{'B', 2}, {'N', tokens}, {'T', 3}, {'H', 2}, {'E', head}}},
           {false}});
  }
  const struct {
    int64_t tokens, head;
  } long_ones[] = {{384, 24}, {513, 16}, {145, 72}, {257, 80}, {290, 88}, {208, 128}};
  for (const auto& [tokens, head] : long_ones)
    cases.push_back({strf("attention_long_%lld_tokens_of_%lld", static_cast<long long>(tokens),
                          static_cast<long long>(head)),
                     make_op<AttentionOp>(),
                     {{{'B', 1}, {'N', tokens}, {'T', 3}, {'H', 2}, {'E', head}}},
                     {false}});
  cases.push_back({"attention_of_many_heads",  // more than a GPU holds at once, so blocks take turns
                   make_op<AttentionOp>(),
                   {{{'B', 3}, {'N', 20}, {'T', 3}, {'H', 300}, {'E', 16}}},
                   {false}});
  add_shared_queries(cases);
}

void add_gemms(std::vector<OpCase>& cases) {
  for (int64_t tokens : {1, 5, 50, 65, 197}) {
    const Dim b('B', 2), n('N', tokens), d('D', 48), f('F', 100), h('H', 3), e('E', 16), t('T', 3);
    const std::string suffix = "_" + std::to_string(tokens);
    cases.push_back({"linear" + suffix, make_op<LinearOp>(), {{b, n, d}, {f, d}}, {false, true}});
    cases.push_back({"linear_qkv" + suffix, make_op<LinearOp>(), {{b, n, d}, {t, h, e, d}}, {false, true}});
    cases.push_back({"linear_proj" + suffix, make_op<LinearOp>(), {{b, n, h, e}, {d, h, e}}, {false, true}});
    cases.push_back({"attention" + suffix, make_op<AttentionOp>(), {{b, n, t, h, e}}, {false}});
    cases.push_back(
        {"attention_odd_head" + suffix, make_op<AttentionOp>(), {{b, n, t, h, {'E', 18}}}, {false}});
    for (const Dim size : {e, Dim('E', 18)})
      cases.push_back({(size == e ? "attention_first" : "attention_first_odd_head") + suffix,
                       make_op<AttentionOp>(QueryScope::kClassToken),
                       {{b, n, t, h, size}},
                       {false}});
    cases.push_back({"attention_probe" + suffix,
                     make_op<AttentionOp>(),
                     {{{'S', 1}, h, e}, {b, n, {'T', 2}, h, e}},
                     {false, false}});
    cases.push_back({"attention_probs" + suffix, make_op<AttentionProbsOp>(), {{b, n, t, h, e}}, {false}});
    cases.push_back({"layernorm" + suffix,
                     make_op<LayernormOp>(1e-6),
                     {{b, n, d}, {d}, {d}},
                     {false, true, true},
                     {kPlain, kVector, kVector}});
  }
  // An eps that shows where it is added.
  for (const int64_t width : {37, 192})
    cases.push_back({strf("layernorm_%lld_large_eps", static_cast<long long>(width)),
                     make_op<LayernormOp>(0.1),
                     {{{'B', 2}, {'N', 5}, {'D', width}}, {{'D', width}}, {{'D', width}}},
                     {false, true, true},
                     {kPlain, kVector, kVector}});
  // Rows of whole packs for every lane, for which a GPU has kernels of their own.
  for (const int64_t width : {512, 768})
    cases.push_back({strf("layernorm_of_whole_packs_%lld", static_cast<long long>(width)),
                     make_op<LayernormOp>(1e-6),
                     {{{'B', 3}, {'N', 5}, {'D', width}}, {{'D', width}}, {{'D', width}}},
                     {false, true, true},
                     {kPlain, kVector, kVector}});
  // Rows of a wide stream, normalised for GEMMs that read 16 bits.
  for (const int64_t width : {37, 64, 768, 1024, 2056})
    cases.push_back({strf("layernorm_to_bf16_%lld", static_cast<long long>(width)),
                     make_op<LayernormOp>(1e-6, DType::kBF16),
                     {{{'B', 2}, {'N', 5}, {'D', width}}, {{'D', width}}, {{'D', width}}},
                     {false, true, true},
                     {kSum, kVector, kVector}});
  cases.push_back({"patch_embed_14",  // of 588 elements, which a GPU fills up with zeros to 592
                   make_op<PatchEmbedOp>(),
                   {{{'B', 2}, {'C', 3}, {'Y', 28}, {'X', 42}}, {{'D', 24}, {'C', 3}, {'P', 14}, {'Q', 14}}},
                   {false, true}});
  // Patches that are not square, and pixels beyond the last of them; patches of 8 columns in rows of 43.
  for (const int64_t columns : {4, 8})
    cases.push_back(
        {strf("patch_embed_6x%lld_uncovered", static_cast<long long>(columns)),
         make_op<PatchEmbedOp>(),
         {{{'B', 2}, {'C', 3}, {'Y', 20}, {'X', 43}}, {{'D', 24}, {'C', 3}, {'P', 6}, {'Q', columns}}},
         {false, true}});
  for (int64_t patch : {1, 7, 16})
    for (int64_t channels : {1, 3, 8})
      cases.push_back({"patch_embed_" + std::to_string(patch) + "_channels" + std::to_string(channels),
                       make_op<PatchEmbedOp>(),
                       {{{'B', 2}, {'C', channels}, {'Y', 3 * patch}, {'X', 5 * patch}},
                        {{'D', 24}, {'C', channels}, {'P', patch}, {'Q', patch}}},
                       {false, true}});
}

// Logits and scores so far below zero that exponentials vanish unless the row's maximum is subtracted:
// neither what lies past the end of a row nor an initial 0 may count as that maximum. All numbers are exact
// in every type.
void add_far_below_zero(std::vector<OpCase>& cases) {
  const Dim b('B', 2), h('H', 2), e('E', 16);
  for (int64_t classes : {3, 37}) {
    std::vector<double> logits;
    for (int64_t i = 0; i < 2 * classes; ++i) logits.push_back(-200.0 - static_cast<double>(i * 7 % 11));
    cases.push_back({strf("softmax_of_%lld_far_below_zero", static_cast<long long>(classes)),
                     make_op<SoftmaxOp>(),
                     {{b, {'K', classes}}},
                     {false},
                     {},
                     {{0, logits}}});
  }
  for (int64_t tokens : {5, 37, 65}) {
    // Queries 8, keys about -4: scores of about -128. Drawn, so that the roundings of weights do not all
    // point one way, as those of a few weights that come again and again would.
    std::vector<double> qkv;
    for (int64_t i = 0; i < 2 * tokens * 3 * 32; ++i) {
      const int64_t part = i / 32 % 3;
      const auto mixed = static_cast<double>(counter_hash(17, static_cast<uint64_t>(i)) % 13) - 6;
      qkv.push_back(part == 0 ? 8 : part == 1 ? -4 - mixed / 32 : mixed / 8);
    }
    for (QueryScope queries : {QueryScope::kAllTokens, QueryScope::kClassToken})
      cases.push_back(
          {strf("attention%s_of_%lld_far_below_zero", queries == QueryScope::kClassToken ? "_first" : "",
                static_cast<long long>(tokens)),
           make_op<AttentionOp>(queries),
           {{b, {'N', tokens}, {'T', 3}, h, e}},
           {false},
           {},
           {{0, qkv}}});
  }
}

void add_small_ops(std::vector<OpCase>& cases) {
  const Dim b('B', 2), n('N', 17), d('D', 50);
  const Shape x = {b, n, d};
  for (bool tanh_form : {false, true})
    cases.push_back({tanh_form ? "gelu_tanh" : "gelu_erf", make_op<GeluOp>(tanh_form), {x}, {false}});
  for (bool tanh_form : {false, true})
    cases.push_back(
        {tanh_form ? "gelu_slope_tanh" : "gelu_slope_erf", make_op<GeluSlopeOp>(tanh_form), {x}, {false}});
  cases.push_back({"tanh", make_op<TanhOp>(), {x}, {false}});
  for (const char* name : EnumNames<ActKind>::names)
    if (const ActKind act = *enum_from_name<ActKind>(name); act != ActKind::kGelu)
      cases.push_back({strf("activate_%s", name), make_op<ActivateOp>(act), {x}, {false}});
  for (double eps : {1e-6, 0.1})
    cases.push_back({eps < 0.1 ? "rmsnorm" : "rmsnorm_large_eps",
                     make_op<RmsnormOp>(eps),
                     {x, {d}},
                     {false, true},
                     {kPlain, kVector}});
  cases.push_back({"bias", make_op<BiasOp>(), {x, {d}}, {false, true}, {kPlain, kVector}});
  cases.push_back({"bias_positions", make_op<BiasOp>(), {x, {n, d}}, {false, true}, {kPlain, kVector}});
  cases.push_back({"scale", make_op<ScaleOp>(), {x, {d}}, {false, true}, {kPlain, kVector}});
  cases.push_back({"add", make_op<AddOp>(), {x, x}, {false, false}});
  cases.push_back({"add_branch_to_stream", make_op<AddOp>(), {x, x}, {false, false}, {kSum, kPlain}});
  cases.push_back({"add_stream_to_branch", make_op<AddOp>(), {x, x}, {false, false}, {kPlain, kSum}});
  cases.push_back({"average", make_op<AverageOp>(), {x, x}, {false, false}});
  cases.push_back({"multiply", make_op<MultiplyOp>(-0.7), {x}, {false}});
  for (Role factor : {kScalars, kFull})
    cases.push_back({factor == kFull ? "scale_by_float" : "scale_by",
                     make_op<ScaleByOp>(),
                     {x, {{'Z', 1}}},
                     {false, false},
                     {kPlain, factor}});
  for (DType to : {DType::kF32, DType::kF16, DType::kBF16})
    cases.push_back({std::string("cast_to_") + to_string(to), make_op<CastOp>(to), {x}, {false}});
  cases.push_back({"softmax", make_op<SoftmaxOp>(), {{b, {'K', 1000}}}, {false}});
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    cases.push_back({std::string("sincos_positions_") + to_string(dtype),
                     make_op<SincosPositionsOp>(3, 5, 24, dtype),
                     {},
                     {}});
  cases.push_back({"select_token", make_op<SelectTokenOp>(3), {x}, {false}});
  cases.push_back({"drop_tokens", make_op<DropTokensOp>(2), {x}, {false}});
  cases.push_back({"mean_tokens", make_op<MeanTokensOp>(2), {x}, {false}});
  cases.push_back({"mean_tokens_of_many_columns",  // so many that a GPU sums eight at a time
                   make_op<MeanTokensOp>(1),
                   {{{'B', 90}, {'N', 3}, {'D', 384}}},
                   {false}});
  cases.push_back({"max_tokens", make_op<MaxTokensOp>(2), {x}, {false}});
  cases.push_back({"self_attention", make_op<SelfAttentionOp>(5), {x}, {false}});
  cases.push_back({"concat_tokens",
                   make_op<ConcatTokensOp>(),
                   {{{'S', 1}, d}, {{'S', 4}, d}, x},
                   {true, true, false},
                   {kVector, kVector, kPlain}});
  for (const auto& [name, size, eps] : {std::tuple<const char*, int64_t, double>{"qk_norm", 16, 1e-6},
                                        {"qk_norm_odd_head", 18, 1e-6},
                                        {"qk_norm_large_eps", 16, 0.1}}) {
    const Dim head('E', size);
    cases.push_back({name,
                     make_op<QkNormOp>(eps),
                     {{b, n, {'T', 3}, {'H', 3}, head}, {head}, {head}, {head}, {head}},
                     {false, true, true, true, true},
                     {kPlain, kVector, kVector, kVector, kVector}});
  }
}

}  // namespace

void add_forward_cases(std::vector<OpCase>& cases) {
  add_attention(cases);
  add_gemms(cases);
  add_far_below_zero(cases);
  add_small_ops(cases);
}

namespace {

std::vector<OpCase> new_op_cases() {
  std::vector<OpCase> cases;
  add_forward_cases(cases);
  add_gradient_cases(cases);
  add_loss_cases(cases);
  add_update_cases(cases);
  add_fused_cases(cases);
  add_image_cases(cases);
  add_flat_cases(cases);
  add_norm_cases(cases);
  add_long_cases(cases);
  return cases;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = new_op_cases();
  return cases;
}

std::vector<OpCaseRef> op_case_refs() {
  return {op_cases().begin(), op_cases().end()};
}

OpCase case_again(const std::string& name) {
  std::vector<OpCase> again = new_op_cases();
  const auto found =
      std::find_if(again.begin(), again.end(), [&](const OpCase& one) { return one.name == name; });
  VT_CHECK(found != again.end(), "there is no case %s", name.c_str());
  return std::move(*found);
}

}  // namespace vitrail
