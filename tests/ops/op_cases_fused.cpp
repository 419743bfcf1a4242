// The shapes in which the fuse pass joins nodes: a GEMM with its neighbours, a gradient with its sum.
#include "op_cases.h"
#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"
#include "ops/scale.h"

namespace vitrail {

namespace {

using enum Role;

OpPtr fused(std::vector<FusedOp::Member> members, int kept = FusedOp::kNone) {
  return std::make_shared<FusedOp>(std::move(members), kept);
}

// A linear with its bias, and the epilogue ops that may follow them.
OpCase bias_case(const char* name, const Shape& x, const Shape& w, const Shape& bias) {
  return {name,
          fused({{make_op<LinearOp>(), {0, 1}}, {make_op<BiasOp>(), {made_by(0), 2}}}),
          {x, w, bias},
          {false, true, true},
          {kPlain, kPlain, kVector}};
}
OpCase gelu_case(const char* name, const Shape& x, const Shape& w, const Shape& bias, bool tanh_form = false,
                 int kept = FusedOp::kNone) {
  return {name,
          fused({{make_op<LinearOp>(), {0, 1}},
                 {make_op<BiasOp>(), {made_by(0), 2}},
                 {make_op<GeluOp>(tanh_form), {made_by(1)}}},
                kept),
          {x, w, bias},
          {false, true, true},
          {kPlain, kPlain, kVector}};
}
OpCase slope_case(const char* name, const Shape& x, const Shape& w, const Shape& bias,
                  bool tanh_form = false) {
  return {name,
          fused({{make_op<LinearOp>(), {0, 1}},
                 {make_op<BiasOp>(), {made_by(0), 2}},
                 {make_op<GeluSlopeOp>(tanh_form), {made_by(1)}}}),
          {x, w, bias},
          {false, true, true},
          {kPlain, kPlain, kVector}};
}
OpCase add_case(const char* name, const Shape& x, const Shape& w, const Shape& bias, const Shape& stream,
                Role of_stream) {
  return {name,
          fused({{make_op<LinearOp>(), {0, 1}},
                 {make_op<BiasOp>(), {made_by(0), 2}},
                 {make_op<AddOp>(), {3, made_by(1)}}}),
          {x, w, bias, stream},
          {false, true, true, false},
          {kPlain, kPlain, kVector, of_stream}};
}
OpCase scale_add_case(const char* name, const Shape& x, const Shape& w, const Shape& vector,
                      const Shape& stream) {
  return {name,
          fused({{make_op<LinearOp>(), {0, 1}},
                 {make_op<BiasOp>(), {made_by(0), 2}},
                 {make_op<ScaleOp>(), {made_by(1), 3}},
                 {make_op<AddOp>(), {4, made_by(2)}}}),
          {x, w, vector, vector, stream},
          {false, true, true, true, false},
          {kPlain, kPlain, kVector, kVector, kPlain}};
}

void add_gemm_chains(std::vector<OpCase>& cases) {
  const Dim b('B', 2), n('N', 65), d('D', 48), f('F', 100);
  const Shape x = {b, n, d}, hidden = {b, n, f};
  const FusedOp::Member norm{make_op<LayernormOp>(1e-6), {0, 1, 2}};
  cases.push_back({"fused_norm_linear_bias_gelu",
                   fused({norm,
                          {make_op<LinearOp>(), {made_by(0), 3}},
                          {make_op<BiasOp>(), {made_by(1), 4}},
                          {make_op<GeluOp>(false), {made_by(2)}}}),
                   {x, {d}, {d}, {f, d}, {f}},
                   {false, true, true, true, true},
                   {kPlain, kVector, kVector, kPlain, kVector}});
  cases.push_back(bias_case("fused_linear_bias", x, {f, d}, {f}));
  cases.push_back(scale_add_case("fused_linear_bias_scale_add", hidden, {d, f}, {d}, x));
  cases.push_back(add_case("fused_linear_bias_add_to_wide_stream", hidden, {d, f}, {d}, x, kSum));
  cases.push_back({"fused_linear_add",
                   fused({{make_op<LinearOp>(), {0, 1}}, {make_op<AddOp>(), {made_by(0), 2}}}),
                   {x, {f, d}, hidden},
                   {false, true, false}});
  cases.push_back({"fused_patch_embed_bias",
                   fused({{make_op<PatchEmbedOp>(), {0, 1}}, {make_op<BiasOp>(), {made_by(0), 2}}}),
                   {{b, {'C', 3}, {'Y', 24}, {'X', 16}}, {d, {'C', 3}, {'P', 8}, {'Q', 8}}, {d}},
                   {false, true, true},
                   {kPlain, kPlain, kVector}});
  cases.push_back({"fused_gelu_bias_without_kernel",
                   fused({{make_op<GeluOp>(true), {0}}, {make_op<BiasOp>(), {made_by(0), 1}}}),
                   {x, {d}},
                   {false, true},
                   {kPlain, kVector}});
}

// Tokens that are joined and get their positions; cast in between where the stream is narrower than the
// prefixes. Every row a multiple of eight elements, also more of them than a GPU's lanes load at once, and
// not.
void add_positions(std::vector<OpCase>& cases) {
  for (const int64_t width : {50, 768, 1032}) {
    const Dim b('B', 3), d('D', width), all('N', 22);
    const std::vector<Shape> ins = {{{'S', 1}, d}, {{'S', 4}, d}, {b, {'N', 17}, d}, {all, d}};
    const std::string suffix = strf("_%lld", static_cast<long long>(width));
    const FusedOp::Member concat{make_op<ConcatTokensOp>(), {0, 1, 2}};
    cases.push_back({"fused_concat_tokens_bias" + suffix,
                     fused({concat, {make_op<BiasOp>(), {made_by(0), 3}}}),
                     ins,
                     {true, true, false, true},
                     {kVector, kVector, kPlain, kVector}});
    cases.push_back(
        {"fused_concat_tokens_cast_bias" + suffix,
         fused({concat, {make_op<CastOp>(DType::kBF16), {made_by(0)}}, {make_op<BiasOp>(), {made_by(1), 3}}}),
         ins,
         {true, true, false, true},
         {kSum, kSum, kPlain, kSum}});
  }
}

// Class-token attention with the qkv linear it reads: few heads and more than a vector holds, heads of odd
// sizes and as wide as the whole, with and without norm and bias.
void add_first_attentions(std::vector<OpCase>& cases) {
  const struct {
    int64_t tokens, heads, head, width;
  } sizes[] = {{5, 3, 16, 48},  {197, 3, 18, 54}, {65, 20, 4, 80},
               {50, 1, 40, 60}, {33, 17, 3, 70},  {1, 2, 8, 16}};
  for (const auto& [tokens, heads, head, width] : sizes) {
    const Dim d('D', width), t('T', 3), h('H', heads), e('E', head);
    const Shape x = {{'B', 2}, {'N', tokens}, d}, weight = {t, h, e, d};
    const std::string suffix =
        strf("_%lld_heads_of_%lld", static_cast<long long>(heads), static_cast<long long>(head));
    const OpPtr attention = make_op<AttentionOp>(QueryScope::kClassToken);
    cases.push_back({"fused_norm_linear_bias_attention" + suffix,
                     fused({{make_op<LayernormOp>(1e-6), {0, 1, 2}},
                            {make_op<LinearOp>(), {made_by(0), 3}},
                            {make_op<BiasOp>(), {made_by(1), 4}},
                            {attention, {made_by(2)}}}),
                     {x, {d}, {d}, weight, {t, h, e}},
                     {false, true, true, true, true},
                     {kPlain, kVector, kVector, kSmall, kVector}});
    cases.push_back({"fused_linear_attention" + suffix,
                     fused({{make_op<LinearOp>(), {0, 1}}, {attention, {made_by(0)}}}),
                     {x, weight},
                     {false, true},
                     {kPlain, kSmall}});
  }
}

// The gradient of a linear and of the gelu before it, alone or with the sums of its rows.
OpCase gelu_grad_case(const std::string& name, const Shape& dy, const Shape& w, const Shape& x,
                      bool tanh_form = false, bool sums = false) {
  return {name,
          fused({{make_op<LinearDxOp>(), {0, 1}}, {make_op<GeluGradOp>(tanh_form, sums), {2, made_by(0)}}}),
          {dy, w, x},
          {false, true, false}};
}

// The same by a slope that was kept.
OpCase slope_grad_case(const std::string& name, const Shape& dy, const Shape& w, const Shape& slope,
                       bool sums) {
  return {name,
          fused({{make_op<LinearDxOp>(), {0, 1}}, {make_op<GeluSlopeGradOp>(sums), {2, made_by(0)}}}),
          {dy, w, slope},
          {false, true, false}};
}

void add_gelu_gradients(std::vector<OpCase>& cases) {
  const Dim b('B', 2), n('N', 65), d('D', 48), f('F', 100);
  for (const bool tanh_form : {false, true}) {
    const std::string name = strf("fused_linear_dx_gelu_grad_%s", tanh_form ? "tanh" : "erf");
    cases.push_back(gelu_grad_case(name, {b, n, d}, {d, f}, {b, n, f}, tanh_form));
    cases.push_back(gelu_grad_case(name + "_sums", {b, n, d}, {d, f}, {b, n, f}, tanh_form, true));
    cases.push_back(gelu_case(tanh_form ? "fused_linear_bias_gelu_kept_tanh" : "fused_linear_bias_gelu_kept",
                              {b, n, d}, {f, d}, {f}, tanh_form, 1));
    cases.push_back(
        slope_case(tanh_form ? "fused_linear_bias_gelu_slope_tanh" : "fused_linear_bias_gelu_slope",
                   {b, n, d}, {f, d}, {f}, tanh_form));
  }
  for (const bool sums : {false, true})
    cases.push_back(slope_grad_case(sums ? "fused_linear_dx_slope_grad_sums" : "fused_linear_dx_slope_grad",
                                    {b, n, d}, {d, f}, {b, n, f}, sums));
}

// A gradient op and the addition to its sum, the last input.
void add_summed(std::vector<OpCase>& cases, const std::string& name, const OpPtr& maker,
                std::vector<Shape> ins, const Shape& sum, Role sum_role = kSum) {
  std::vector<FusedOp::Source> sources;
  for (size_t i = 0; i < ins.size(); ++i) sources.push_back(static_cast<int>(i));
  std::vector<Role> roles(ins.size(), kPlain);
  roles.push_back(sum_role);
  const int last = static_cast<int>(ins.size());
  ins.push_back(sum);
  const std::vector<bool> none(ins.size(), false);
  cases.push_back({"fused_" + name + "_accumulate",
                   fused({{maker, sources}, {make_op<AccumulateOp>(), {last, made_by(0)}}}), ins, none,
                   roles});
}

void add_sums(std::vector<OpCase>& cases) {
  const Dim b('B', 3), n('N', 65), d('D', 48), f('F', 100), h('H', 3), e('E', 16), s('S', 1), t('T', 3);
  const Shape x = {b, n, d};
  add_summed(cases, "linear_dw", make_op<LinearDwOp>(), {x, {b, n, f}}, {f, d});
  add_summed(cases, "linear_dw_qkv", make_op<LinearDwOp>(), {x, {b, n, t, h, e}}, {t, h, e, d});
  add_summed(cases, "linear_dw_head", make_op<LinearDwOp>(), {{b, d}, {b, {'K', 10}}}, {{'K', 10}, d});
  add_summed(cases, "sum_rows", make_op<SumRowsOp>(size_t{1}), {x}, {d});
  add_summed(cases, "sum_positions", make_op<SumRowsOp>(size_t{2}), {x}, {n, d});
  add_summed(cases, "scale_dw", make_op<ScaleDwOp>(size_t{1}), {x, x}, {d});
  add_summed(cases, "sum_tokens", make_op<SumTokensOp>(0, 1), {x}, {s, d});
  add_summed(cases, "patch_embed_dw", make_op<PatchEmbedDwOp>(8, 8),
             {{b, {'C', 3}, {'Y', 24}, {'X', 16}}, {b, {'N', 6}, d}}, {d, {'C', 3}, {'P', 8}, {'Q', 8}});
  add_summed(cases, "patch_embed_dw_7", make_op<PatchEmbedDwOp>(7, 7),
             {{b, {'C', 3}, {'Y', 21}, {'X', 14}}, {b, {'N', 6}, d}}, {d, {'C', 3}, {'P', 7}, {'Q', 7}});
  add_summed(cases, "cast", make_op<CastOp>(DType::kF32), {{s, d}}, {s, d}, kFull);
  add_summed(cases, "linear_dx", make_op<LinearDxOp>(), {{s, h, e}, {h, e, d}}, {s, d}, kPlain);
}

// Depths that are multiples of 32, as kernels on bf16 tensors require.
void add_deep_gemms(std::vector<OpCase>& cases) {
  const Dim b('B', 2), n('N', 37), d('D', 64), f('F', 96);
  const Shape x = {b, n, d}, hidden = {b, n, f};
  cases.push_back({"linear_deep", make_op<LinearOp>(), {x, {f, d}}, {false, true}});
  cases.push_back({"linear_dx_deep", make_op<LinearDxOp>(), {hidden, {f, d}}, {false, true}});
  cases.push_back(bias_case("fused_linear_bias_deep", x, {f, d}, {f}));
  cases.push_back(add_case("fused_linear_bias_add_deep", hidden, {d, f}, {d}, x, kSum));
  cases.push_back(scale_add_case("fused_linear_bias_scale_add_deep", hidden, {d, f}, {d}, x));
  cases.push_back(gelu_case("fused_linear_bias_gelu_deep", x, {f, d}, {f}));
  cases.push_back(gelu_case("fused_linear_bias_gelu_tanh_deep", x, {f, d}, {f}, true));
  cases.push_back(gelu_case("fused_linear_bias_gelu_kept_deep", x, {f, d}, {f}, false, 1));
  cases.push_back(slope_case("fused_linear_bias_gelu_slope_deep", x, {f, d}, {f}));
  cases.push_back(slope_grad_case("fused_linear_dx_slope_grad_deep", x, {d, f}, hidden, false));
  cases.push_back(slope_grad_case("fused_linear_dx_slope_grad_sums_deep", x, {d, f}, hidden, true));
  cases.push_back(gelu_grad_case("fused_linear_dx_gelu_grad_deep", x, {d, f}, hidden));
  cases.push_back(gelu_grad_case("fused_linear_dx_gelu_grad_sums_deep", x, {d, f}, hidden, false, true));
}

// Several tiles across, or many steps along a tile, for kernels whose tiles are large; neither divides
// evenly.
void add_large_gemms(std::vector<OpCase>& cases) {
  const Dim b('B', 2), n('N', 37), narrow('D', 24), wide('F', 400);
  const Shape x = {b, n, narrow}, hidden = {b, n, wide};
  cases.push_back({"linear_dx_wide", make_op<LinearDxOp>(), {x, {narrow, wide}}, {false, true}});
  cases.push_back(gelu_case("fused_linear_bias_gelu_wide", x, {wide, narrow}, {wide}));
  cases.push_back(gelu_case("fused_linear_bias_gelu_kept_wide", x, {wide, narrow}, {wide}, false, 1));
  cases.push_back(
      gelu_grad_case("fused_linear_dx_gelu_grad_sums_wide", x, {narrow, wide}, hidden, false, true));
  cases.push_back(slope_case("fused_linear_bias_gelu_slope_wide", x, {wide, narrow}, {wide}));
  cases.push_back(slope_grad_case("fused_linear_dx_slope_grad_sums_wide", x, {narrow, wide}, hidden, true));
  cases.push_back(add_case("fused_linear_bias_add_wide", x, {wide, narrow}, {wide}, hidden, kPlain));
  cases.push_back(add_case("fused_linear_bias_add_long", hidden, {narrow, wide}, {narrow}, x, kPlain));
}

}  // namespace

void add_fused_cases(std::vector<OpCase>& cases) {
  add_gemm_chains(cases);
  add_positions(cases);
  add_first_attentions(cases);
  add_gelu_gradients(cases);
  add_sums(cases);
  add_deep_gemms(cases);
  add_large_gemms(cases);
}

}  // namespace vitrail
