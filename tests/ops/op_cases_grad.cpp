// The ops of the backward pass.
#include "op_cases.h"
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
#include "ops/softmax.h"

namespace vitrail {

namespace {

using enum Role;

void add_gemm_grads(std::vector<OpCase>& cases) {
  for (int64_t tokens : {1, 5, 50, 65, 197}) {
    const Dim b('B', 2), n('N', tokens), d('D', 48), f('F', 100), h('H', 3), e('E', 16), t('T', 3);
    const std::string suffix = "_" + std::to_string(tokens);
    const Shape x = {b, n, d};
    cases.push_back({"linear_dx" + suffix, make_op<LinearDxOp>(), {{b, n, f}, {f, d}}, {false, true}});
    cases.push_back(
        {"linear_dx_qkv" + suffix, make_op<LinearDxOp>(), {{b, n, t, h, e}, {t, h, e, d}}, {false, true}});
    cases.push_back({"linear_dx_proj" + suffix, make_op<LinearDxOp>(), {x, {d, h, e}}, {false, true}});
    cases.push_back({"linear_dw" + suffix, make_op<LinearDwOp>(), {x, {b, n, f}}, {false, false}});
    cases.push_back({"linear_dw_qkv" + suffix, make_op<LinearDwOp>(), {x, {b, n, t, h, e}}, {false, false}});
    cases.push_back({"linear_dw_proj" + suffix, make_op<LinearDwOp>(), {{b, n, h, e}, x}, {false, false}});
    cases.push_back({"attention_grad" + suffix,
                     make_op<AttentionGradOp>(),
                     {{b, n, t, h, e}, {b, n, h, e}},
                     {false, false}});
    const Dim odd('E', 18), s('S', 1);
    cases.push_back({"attention_grad_odd_head" + suffix,
                     make_op<AttentionGradOp>(),
                     {{b, n, t, h, odd}, {b, n, h, odd}},
                     {false, false}});
    for (const Dim size : {e, odd})
      cases.push_back({(size == e ? "attention_first_grad" : "attention_first_grad_odd_head") + suffix,
                       make_op<AttentionGradOp>(QueryScope::kClassToken),
                       {{b, n, t, h, size}, {b, h, size}},
                       {false, false}});
    cases.push_back({"attention_grad_probe" + suffix,
                     make_op<AttentionGradOp>(),
                     {{s, h, e}, {b, n, {'T', 2}, h, e}, {b, s, h, e}},
                     {false, false, false}});
    for (bool trained : {false, true})
      cases.push_back({(trained ? "layernorm_grad_trained" : "layernorm_grad") + suffix,
                       make_op<LayernormGradOp>(1e-6, trained),
                       {x, {d}, x},
                       {false, true, false},
                       {kPlain, kVector, kPlain}});
    cases.push_back({"layernorm_grad_residual" + suffix,
                     make_op<LayernormGradOp>(1e-6, true, true),
                     {x, {d}, x, x},
                     {false, true, false, false},
                     {kPlain, kVector, kPlain, kPlain}});
  }
}

void add_attention_grads(std::vector<OpCase>& cases) {
  const struct {
    int64_t tokens, head;
  } sizes[] = {{161, 64}, {197, 64}, {200, 40}, {208, 56}, {257, 64}, {290, 64},
               {65, 80},  {40, 128}, {20, 144}, {100, 32}, {150, 24}, {70, 96}};
  for (const auto& [tokens, head] : sizes) {
    const Dim n('N', tokens), b('B', 2), h('H', 3), e('E', head);
    cases.push_back({strf("attention_grad_%lld_tokens_of_%lld", static_cast<long long>(tokens),
                          static_cast<long long>(head)),
                     make_op<AttentionGradOp>(),
                     {{b, n, {'T', 3}, h, e}, {b, n, h, e}},
                     {false, false}});
    cases.push_back({strf("attention_first_grad_%lld_tokens_of_%lld", static_cast<long long>(tokens),
                          static_cast<long long>(head)),
                     make_op<AttentionGradOp>(QueryScope::kClassToken),
                     {{b, n, {'T', 3}, h, e}, {b, h, e}},
                     {false, false}});
  }
  const struct {
    int64_t tokens, head;
  } long_ones[] = {{384, 24}, {513, 16}, {145, 72}, {257, 80}, {290, 88}, {208, 128}};
  for (const auto& [tokens, head] : long_ones) {
    const Dim n('N', tokens), b('B', 1), h('H', 2), e('E', head);
    cases.push_back({strf("attention_grad_long_%lld_tokens_of_%lld", static_cast<long long>(tokens),
                          static_cast<long long>(head)),
                     make_op<AttentionGradOp>(),
                     {{b, n, {'T', 3}, h, e}, {b, n, h, e}},
                     {false, false}});
  }
  const Dim n('N', 20), b('B', 3), h('H', 300), e('E', 16);
  cases.push_back({"attention_grad_of_many_heads",  // more than a GPU holds at once, so blocks take turns
                   make_op<AttentionGradOp>(),
                   {{b, n, {'T', 3}, h, e}, {b, n, h, e}},
                   {false, false}});
  // Queries that all images share.
  const Dim few('H', 2);
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{3, 65}, {70, 40}}) {
    const Dim s('S', queries), m('N', keys);
    cases.push_back({strf("attention_grad_of_%lld_queries_and_%lld_keys", static_cast<long long>(queries),
                          static_cast<long long>(keys)),
                     make_op<AttentionGradOp>(),
                     {{s, few, e}, {b, m, {'T', 2}, few, e}, {b, s, few, e}},
                     {false, false, false}});
  }
  const Dim many('N', 4100), eight('E', 8);
  cases.push_back({"attention_first_grad_of_4100_tokens",  // more than a GPU's block holds in shared memory
                   make_op<AttentionGradOp>(QueryScope::kClassToken),
                   {{b, many, {'T', 3}, few, eight}, {b, few, eight}},
                   {false, false}});
}

// Gradients of norms in a stream that is wider than what GEMMs read, which they write in both types.
void add_stream_grads(std::vector<OpCase>& cases) {
  for (int64_t width : {50, 64, 192, 768, 1024, 1280, 1664})
    for (bool trained : {false, true}) {
      const Shape wide = {{'B', 3}, {'N', 17}, {'D', width}};
      cases.push_back({strf("layernorm_grad_in_two_types_%lld%s", static_cast<long long>(width),
                            trained ? "" : "_frozen"),
                       make_op<LayernormGradOp>(1e-6, trained, true, trained, DType::kBF16),
                       {wide, {{'D', width}}, wide, wide},
                       {false, true, false, false},
                       {kSum, kVector, kPlain, kSum}});
    }
}

// An eps that shows where it is added: rows in registers, and rows of a block each.
void add_large_eps_grads(std::vector<OpCase>& cases) {
  for (int64_t width : {50, 192}) {
    const Shape rows = {{'B', 2}, {'N', 5}, {'D', width}}, row = {{'D', width}};
    cases.push_back({strf("layernorm_grad_%lld_large_eps", static_cast<long long>(width)),
                     make_op<LayernormGradOp>(0.1, true),
                     {rows, row, rows},
                     {false, true, false},
                     {kPlain, kVector, kPlain}});
  }
  const Shape rows = {{'B', 2}, {'N', 5}, {'D', 50}};
  cases.push_back({"rmsnorm_grad_large_eps",
                   make_op<RmsnormGradOp>(0.1, true),
                   {rows, {{'D', 50}}, rows},
                   {false, true, false},
                   {kPlain, kVector, kPlain}});
}

void add_qk_norm_grads(std::vector<OpCase>& cases) {
  const Dim b('B', 3), n('N', 17), h('H', 3);
  for (bool trained : {false, true})
    for (const int64_t size : {16, 18}) {
      const Dim head('E', size);
      const Shape rows = {b, n, {'T', 3}, h, head};
      cases.push_back({strf("qk_norm_grad%s%s", trained ? "_trained" : "", size == 16 ? "" : "_odd_head"),
                       make_op<QkNormGradOp>(1e-6, trained),
                       {rows, {head}, {head}, rows},
                       {false, true, true, false},
                       {kPlain, kVector, kVector, kPlain}});
    }
}

void add_row_grads(std::vector<OpCase>& cases) {
  const Dim b('B', 3), n('N', 17), d('D', 50), e('E', 16), h('H', 3);
  const Shape x = {b, n, d}, qkv = {b, n, {'T', 3}, h, e};
  cases.push_back({"layernorm_grad_of_wide_stream",
                   make_op<LayernormGradOp>(1e-6, true),
                   {x, {d}, x},
                   {false, true, false},
                   {kSum, kVector, kPlain}});
  cases.push_back({"layernorm_grad_of_wide_stream_residual",
                   make_op<LayernormGradOp>(1e-6, false, true),
                   {x, {d}, x, x},
                   {false, true, false, false},
                   {kSum, kVector, kPlain, kSum}});
  add_qk_norm_grads(cases);
  add_large_eps_grads(cases);
  cases.push_back({"layernorm_grad_sums",
                   make_op<LayernormGradOp>(1e-6, true, true, true),
                   {x, {d}, x, x},
                   {false, true, false, false},
                   {kPlain, kVector, kPlain, kPlain}});
  for (int64_t width : {50, 192, 768})
    for (bool tanh_form : {false, true}) {
      const Shape hidden = {b, n, {'F', width}};
      cases.push_back(
          {strf("gelu_grad_sums_%s_%lld", tanh_form ? "tanh" : "erf", static_cast<long long>(width)),
           make_op<GeluGradOp>(tanh_form, true),
           {hidden, hidden},
           {false, false}});
    }
  for (int64_t width : {50, 192}) {
    const Shape hidden = {b, n, {'F', width}};
    cases.push_back({strf("gelu_slope_grad_sums_%lld", static_cast<long long>(width)),
                     make_op<GeluSlopeGradOp>(true),
                     {hidden, hidden},
                     {false, false}});
  }
  cases.push_back({"gelu_slope_grad", make_op<GeluSlopeGradOp>(), {x, x}, {false, false}});
  for (int64_t width : {192, 384, 768, 1024, 1280}) {
    const Shape wide = {b, n, {'D', width}};
    cases.push_back({strf("layernorm_grad_sums_%lld", static_cast<long long>(width)),
                     make_op<LayernormGradOp>(1e-6, true, true, true),
                     {wide, {{'D', width}}, wide, wide},
                     {false, true, false, false},
                     {kPlain, kVector, kPlain, kPlain}});
    cases.push_back({strf("layernorm_grad_sums_frozen_%lld", static_cast<long long>(width)),
                     make_op<LayernormGradOp>(1e-6, false, true, true),
                     {wide, {{'D', width}}, wide, wide},
                     {false, true, false, false},
                     {kPlain, kVector, kPlain, kPlain}});
  }
  add_stream_grads(cases);
  for (bool tanh_form : {false, true})
    cases.push_back({tanh_form ? "gelu_grad_tanh" : "gelu_grad_erf",
                     make_op<GeluGradOp>(tanh_form),
                     {x, x},
                     {false, false}});
  for (const char* name : EnumNames<ActKind>::names)
    if (const ActKind act = *enum_from_name<ActKind>(name); act != ActKind::kGelu)
      cases.push_back({strf("activate_grad_%s", name), make_op<ActivateGradOp>(act), {x, x}, {false, false}});
  for (bool trained : {false, true})
    cases.push_back({trained ? "rmsnorm_grad" : "rmsnorm_grad_frozen",
                     make_op<RmsnormGradOp>(1e-6, trained),
                     {x, {d}, x},
                     {false, true, false},
                     {kPlain, kVector, kPlain}});
  cases.push_back({"tanh_grad", make_op<TanhGradOp>(), {x, x}, {false, false}});
  const Shape logits = {b, {'K', 1000}};
  cases.push_back(
      {"softmax_grad", make_op<SoftmaxGradOp>(), {logits, logits}, {false, false}, {kNonNegative, kPlain}});
  cases.push_back({"sum_rows", make_op<SumRowsOp>(size_t{1}), {x}, {false}});
  cases.push_back({"sum_rows_positions", make_op<SumRowsOp>(size_t{2}), {x}, {false}});
  cases.push_back({"sum_rows_qkv", make_op<SumRowsOp>(size_t{3}), {qkv}, {false}});
  cases.push_back({"sum_rows_many", make_op<SumRowsOp>(size_t{1}), {{{'B', 40}, n, d}}, {false}});
  cases.push_back({"scale_dw", make_op<ScaleDwOp>(size_t{1}), {x, x}, {false, false}});
}

void add_token_grads(std::vector<OpCase>& cases) {
  const Dim b('B', 3), n('N', 17), d('D', 50);
  cases.push_back({"select_token_grad", make_op<SelectTokenGradOp>(3, n), {{b, d}}, {false}});
  cases.push_back({"mean_tokens_grad", make_op<MeanTokensGradOp>(2, n), {{b, d}}, {false}});
  cases.push_back({"max_tokens_grad", make_op<MaxTokensGradOp>(2), {{b, n, d}, {b, d}}, {false, false}});
  cases.push_back(
      {"self_attention_grad", make_op<SelfAttentionGradOp>(5), {{b, n, d}, {b, n, d}}, {false, false}});
  cases.push_back({"patch_embed_dw_uncovered",
                   make_op<PatchEmbedDwOp>(6, 8),
                   {{b, {'C', 3}, {'Y', 20}, {'X', 43}}, {b, {'N', 15}, {'D', 24}}},
                   {false, false}});
  cases.push_back({"patch_embed_dw_14",  // as patch_embed_14
                   make_op<PatchEmbedDwOp>(14, 14),
                   {{b, {'C', 3}, {'Y', 28}, {'X', 42}}, {b, {'N', 6}, {'D', 24}}},
                   {false, false}});
  cases.push_back({"drop_tokens_grad", make_op<DropTokensGradOp>(2), {{b, n, d}}, {false}});
  cases.push_back({"sum_tokens", make_op<SumTokensOp>(1, 4), {{b, n, d}}, {false}});
  cases.push_back({"sum_tokens_of_many_columns",  // so many that a GPU sums eight at a time
                   make_op<SumTokensOp>(1, 46),
                   {{{'B', 2}, {'N', 47}, {'D', 768}}},
                   {false}});
  for (int64_t patch : {1, 7, 16})
    for (int64_t channels : {1, 3})
      cases.push_back({"patch_embed_dw_" + std::to_string(patch) + "_channels" + std::to_string(channels),
                       make_op<PatchEmbedDwOp>(patch, patch),
                       {{b, {'C', channels}, {'Y', 3 * patch}, {'X', 5 * patch}}, {b, {'N', 15}, {'D', 24}}},
                       {false, false}});
}

}  // namespace

void add_gradient_cases(std::vector<OpCase>& cases) {
  add_gemm_grads(cases);
  add_attention_grads(cases);
  add_row_grads(cases);
  add_token_grads(cases);
}

}  // namespace vitrail
