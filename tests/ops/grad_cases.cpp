#include "grad_cases.h"

#include "base/rng.h"
#include "ops/activate.h"
#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/max_tokens.h"
#include "ops/patch_embed.h"
#include "ops/pool_tokens.h"
#include "ops/qk_norm.h"
#include "ops/qk_rmsnorm.h"
#include "ops/rmsnorm.h"
#include "ops/scale.h"
#include "ops/self_attention.h"
#include "ops/softmax.h"

namespace vitrail {

namespace {

// An integer in [least, most], a function of the example's number and the dim.
int64_t draw(int64_t n, char dim, int64_t least, int64_t most) {
  const uint64_t hash = counter_hash(static_cast<uint64_t>(dim), static_cast<uint64_t>(n));
  return least + static_cast<int64_t>(hash % static_cast<uint64_t>(most - least + 1));
}
Dim some(char name, int64_t n, int64_t least, int64_t most) {
  return {name, draw(n, name, least, most)};
}
Dim tokens(int64_t n) {
  constexpr int64_t kFirst[] = {1, 50, 65, 197, 257};
  return {'N', n < 5 ? kFirst[n] : draw(n, 'N', 1, 24)};
}
Dim batch(int64_t n) {
  return some('B', n, 1, 3);
}
Dim width(int64_t n) {
  return some('D', n, 1, 13);
}
Shape stream(int64_t n) {
  return {batch(n), tokens(n), width(n)};
}

template <typename T, typename... Args>
OpPtr op(Args... args) {
  return std::make_shared<T>(args...);
}

OpCase unary(OpPtr o, int64_t n) {
  return {"", std::move(o), {stream(n)}, {true}};
}
OpCase loss(LossKind kind, int64_t n) {
  const Shape logits = {some('B', n, 1, 5), some('K', n, 1, 20)};
  return {"", op<CrossEntropyOp>(kind), {logits, logits}, {true, false}};
}
OpCase dropped(DropUnit unit, int64_t n) {
  return {"", op<DropoutOp>(0.3, unit, uint64_t{77}), {stream(n), {{'Z', kCounterCount}}}, {true, false}};
}
Dim heads(int64_t n) {
  return some('H', n, 1, 3);
}
Dim head_size(int64_t n) {
  return some('E', n, 2, 7);
}

std::vector<GradFamily> gemm_families() {
  return {
      {"linear",
       [](int64_t n) -> OpCase {
         return {"", op<LinearOp>(), {stream(n), {some('F', n, 1, 9), width(n)}}, {true, true}};
       }},
      {"linear_qkv",
       [](int64_t n) -> OpCase {
         return {"", op<LinearOp>(), {stream(n), {{'T', 3}, heads(n), head_size(n), width(n)}}, {true, true}};
       }},
      {"linear_proj",
       [](int64_t n) -> OpCase {
         return {"",
                 op<LinearOp>(),
                 {{batch(n), tokens(n), heads(n), head_size(n)}, {width(n), heads(n), head_size(n)}},
                 {true, true}};
       }},
      {"attention",
       [](int64_t n) -> OpCase {
         return {"", op<AttentionOp>(), {{batch(n), tokens(n), {'T', 3}, heads(n), head_size(n)}}, {true}};
       }},
      {"attention_first",
       [](int64_t n) -> OpCase {
         return {"",
                 std::make_shared<AttentionOp>(QueryScope::kClassToken),
                 {{batch(n), tokens(n), {'T', 3}, heads(n), head_size(n)}},
                 {true}};
       }},
      {"attention_probe",
       [](int64_t n) -> OpCase {
         return {"",
                 op<AttentionOp>(),
                 {{some('S', n, 1, 2), heads(n), head_size(n)},
                  {batch(n), tokens(n), {'T', 2}, heads(n), head_size(n)}},
                 {true, true}};
       }},
      {"patch_embed",
       [](int64_t n) -> OpCase {
         const int64_t patch = draw(n, 'P', 1, 4), across = draw(n, 'Q', 1, 4);
         return {"",
                 op<PatchEmbedOp>(),
                 {{batch(n),
                   some('C', n, 1, 4),
                   {'Y', patch * draw(n, 'Y', 1, 5)},
                   {'X', across * draw(n, 'X', 1, 5) + n % 3}},
                  {width(n), some('C', n, 1, 4), {'P', patch}, {'Q', across}}},
                 {false, true}};
       }},
      {"concat_tokens",
       [](int64_t n) -> OpCase {
         return {"",
                 op<ConcatTokensOp>(),
                 {{{'S', 1}, width(n)}, {some('S', n, 1, 4), width(n)}, stream(n)},
                 {true, true, true}};
       }},
  };
}

std::vector<GradFamily> activation_families() {
  return {
      {"relu", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kRelu), n); }},
      {"relu6", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kRelu6), n); }},
      {"leaky_relu", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kLeakyRelu), n); }},
      {"elu", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kElu), n); }},
      {"silu", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kSilu), n); }},
      {"mish", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kMish), n); }},
      {"quick_gelu", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kQuickGelu), n); }},
      {"hard_swish", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kHardSwish), n); }},
      {"activate_tanh", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kTanh), n); }},
      {"sigmoid", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kSigmoid), n); }},
      {"selu", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kSelu), n); }},
      {"hard_sigmoid", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kHardSigmoid), n); }},
      {"hard_mish", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kHardMish), n); }},
      {"identity", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kIdentity), n); }},
      {"laplace", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kLaplace), n); }},
      {"relu2", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kRelu2), n); }},
      {"sqrt_softplus", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kSqrtSoftplus), n); }},
      {"gelu_10", [](int64_t n) { return unary(op<ActivateOp>(ActKind::kGelu10), n); }},
  };
}

std::vector<GradFamily> row_families() {
  return {
      {"bias",
       [](int64_t n) -> OpCase {
         return {"", op<BiasOp>(), {stream(n), {width(n)}}, {true, true}};
       }},
      {"positions",
       [](int64_t n) -> OpCase {
         return {"", op<BiasOp>(), {stream(n), {tokens(n), width(n)}}, {true, true}};
       }},
      {"add",
       [](int64_t n) -> OpCase {
         return {"", op<AddOp>(), {stream(n), stream(n)}, {true, true}};
       }},
      {"average",
       [](int64_t n) -> OpCase {
         return {"", op<AverageOp>(), {stream(n), stream(n)}, {true, true}};
       }},
      {"multiply", [](int64_t n) { return unary(op<MultiplyOp>(-0.7), n); }},
      {"cast", [](int64_t n) { return unary(op<CastOp>(DType::kF64), n); }},
      {"tanh", [](int64_t n) { return unary(op<TanhOp>(), n); }},
      {"gelu_erf", [](int64_t n) { return unary(op<GeluOp>(false), n); }},
      {"gelu_tanh", [](int64_t n) { return unary(op<GeluOp>(true), n); }},
      {"scale",
       [](int64_t n) -> OpCase {
         return {"", op<ScaleOp>(), {stream(n), {width(n)}}, {true, true}};
       }},
      {"softmax",
       [](int64_t n) -> OpCase {
         return {"", op<SoftmaxOp>(), {{batch(n), some('K', n, 1, 40)}}, {true}};
       }},
      {"layernorm",
       [](int64_t n) -> OpCase {
         const Dim d = some('D', n, 3, 13);  // of two, one sign is all that is left after a norm
         return {"",
                 op<LayernormOp>(n % 2 ? 1e-6 : 0.1),
                 {{batch(n), tokens(n), d}, {d}, {d}},
                 {true, true, true}};
       }},
      {"rmsnorm",
       [](int64_t n) -> OpCase {
         const Dim d = some('D', n, 3, 13);
         return {"", op<RmsnormOp>(n % 2 ? 1e-6 : 0.1), {{batch(n), tokens(n), d}, {d}}, {true, true}};
       }},
      {"simplenorm",
       [](int64_t n) -> OpCase {
         const Dim d = some('D', n, 3, 13);
         return {"", op<RmsnormOp>(n % 2 ? 1e-6 : 0.1, true), {{batch(n), tokens(n), d}, {d}}, {true, true}};
       }},
      {"qk_rmsnorm",
       [](int64_t n) -> OpCase {
         const Dim e = some('E', n, 3, 7);
         return {"",
                 op<QkRmsnormOp>(n % 2 ? 1e-6 : 0.1, n % 3 == 0),
                 {{batch(n), tokens(n), {'T', 3}, heads(n), e}, {e}, {e}},
                 {true, true, true}};
       }},
      {"qk_norm",
       [](int64_t n) -> OpCase {
         const Dim e = some('E', n, 3, 7);
         return {"",
                 op<QkNormOp>(n % 2 ? 1e-6 : 0.1),
                 {{batch(n), tokens(n), {'T', 3}, heads(n), e}, {e}, {e}, {e}, {e}},
                 {true, true, true, true, true}};
       }},
  };
}

std::vector<GradFamily> token_and_loss_families() {
  return {
      {"select_token", [](int64_t n) { return unary(op<SelectTokenOp>(tokens(n).extent / 2), n); }},
      {"mean_tokens", [](int64_t n) { return unary(op<MeanTokensOp>(tokens(n).extent / 3), n); }},
      {"max_tokens", [](int64_t n) { return unary(op<MaxTokensOp>(tokens(n).extent / 3), n); }},
      {"self_attention",
       [](int64_t n) -> OpCase {
         const Dim d('D', heads(n).extent * head_size(n).extent);
         return {"", op<SelfAttentionOp>(heads(n).extent), {{batch(n), tokens(n), d}}, {true}};
       }},
      {"drop_tokens", [](int64_t n) { return unary(op<DropTokensOp>(tokens(n).extent / 3), n); }},
      {"dropout", [](int64_t n) { return dropped(DropUnit::kElement, n); }},
      {"drop_path", [](int64_t n) { return dropped(DropUnit::kSample, n); }},
      {"softmax_loss", [](int64_t n) { return loss(LossKind::kSoftmax, n); }},
      {"divergence", [](int64_t n) { return loss(LossKind::kDivergence, n); }},
      {"bce_sum", [](int64_t n) { return loss(LossKind::kSigmoidSum, n); }},
      {"bce_mean", [](int64_t n) { return loss(LossKind::kSigmoidMean, n); }},
  };
}

}  // namespace

const std::vector<GradFamily>& grad_families() {
  static const std::vector<GradFamily> families = [] {
    std::vector<GradFamily> all;
    for (auto part : {gemm_families, activation_families, row_families, token_and_loss_families})
      for (const GradFamily& family : part()) all.push_back(family);
    return all;
  }();
  return families;
}

}  // namespace vitrail
