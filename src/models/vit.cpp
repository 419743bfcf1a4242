#include "models/vit.h"

#include <map>

#include "base/rng.h"
#include "models/act_nodes.h"
#include "models/norm_nodes.h"
#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/max_tokens.h"
#include "ops/patch_embed.h"
#include "ops/pool_tokens.h"
#include "ops/scale.h"
#include "ops/self_attention.h"
#include "ops/sincos_positions.h"
#include "ops/softmax.h"

namespace vitrail {

namespace {

class VitRecorder {
 public:
  VitRecorder(Builder& builder, const VitConfig& config, const VitRecordOptions& options)
      : b_(builder), c_(config), options_(options) {
    for (const ParamSpec& spec : vit_params(config)) specs_.emplace(spec.name, spec);
    for (const ParamSpec& spec : lora_params(config, options.lora)) specs_.emplace(spec.name, spec);
    if (options.dropout > 0 || options.drop_path > 0)
      values_.counters = b_.input("counters", {DType::kI64, {{'Z', kCounterCount}}});
  }

  // Records the body and returns the tokens after the last norm.
  ValueId record_body() {
    ValueId x = embed();
    note("embed", x);
    for (int64_t i = 0; i < c_.depth; ++i) {
      x = block(x, i);
      note(block_name(i), x);
    }
    if (c_.norm_place == NormPlace::kBeforePool) x = norm(x, "norm", Step::kLastNorm);
    note("tokens", x);
    return x;
  }

  VitValues record_heads(ValueId tokens) {
    const Pooled pooled = pool_heads(tokens);
    if (options_.features || c_.classes == 0)
      b_.output("features", c_.distilled ? b_.add<AverageOp>({pooled.feature, pooled.distilled}, "features")
                                         : pooled.feature);
    if (c_.classes == 0) return values_;
    values_.logits = linear(pooled.feature, "head");
    if (c_.distilled) values_.distilled = linear(pooled.distilled, "head_dist");
    return values_;
  }

  // Records the outputs of inference: one vector of logits, and the probabilities if requested.
  void record_outputs() {
    if (c_.classes == 0) return;
    ValueId logits = values_.logits;
    if (c_.distilled) logits = b_.add<AverageOp>({logits, values_.distilled}, "logits");
    b_.output("logits", logits);
    if (options_.probabilities) b_.output("probs", b_.add<SoftmaxOp>({logits}, "probs"));
  }

 private:
  using Step = ModelStep;

  ValueId param(const std::string& name) {
    const ParamSpec& known = spec(name);
    return b_.parameter(known.name, {options_.dtype, known.shape});
  }
  const ParamSpec& spec(const std::string& name) const {
    const auto found = specs_.find(b_.path(name));
    VT_CHECK(found != specs_.end(), "the parameter table has no %s", b_.path(name).c_str());
    return found->second;
  }

  void note(const std::string& name, ValueId value) {
    if (options_.layers) b_.output(name, value);
  }

  // `where` is the caller's line, which a report should name.
  ValueId norm(ValueId x, const std::string& name, Step step, SourceLine where = SourceLine::here()) {
    return add_norm(b_, c_.norm, c_.norm_eps, norm_inputs(c_.norm, x, {name}), {name, step, where});
  }
  std::vector<ValueId> norm_inputs(NormKind kind, ValueId x, const std::vector<std::string>& norms) {
    std::vector<ValueId> ins = {x};
    for (const std::string& name : norm_parameters(kind, norms)) ins.push_back(param(name));
    return ins;
  }

  ValueId linear(ValueId x, const std::string& name, Step step = Step::kNone, bool bias = true,
                 SourceLine where = SourceLine::here()) {
    const Builder::Scope scope(b_, step);
    ValueId y = b_.add<LinearOp>({x, param(name + ".weight")}, {name, where});
    if (lora_applies(options_.lora, spec(name + ".weight")))
      y = b_.add<AddOp>({y, adapter(x, name)}, {name + ".lora", where});
    if (bias) y = b_.add<BiasOp>({y, param(name + ".bias")}, {name + ".bias", where});
    return y;
  }

  ValueId adapter(ValueId x, const std::string& name) {
    const Builder::Scope scope(b_, ModelPart::kAdapter);
    const ValueId low = b_.add<LinearOp>({x, param(name + ".lora_a.weight")}, name + ".lora_a");
    const ValueId up = b_.add<LinearOp>({low, param(name + ".lora_b.weight")}, name + ".lora_b");
    const double scale = options_.lora.alpha / static_cast<double>(options_.lora.rank);
    return b_.add<MultiplyOp>({up}, name + ".lora_scale", scale);
  }

  ValueId drop(ValueId x, double probability, DropUnit unit, const std::string& name) {
    if (probability <= 0) return x;
    return b_.add<DropoutOp>({x, values_.counters}, name, probability, unit, name_key(b_.path(name)));
  }
  ValueId dropout(ValueId x, const std::string& name) {
    return drop(x, options_.dropout, DropUnit::kElement, name);
  }

  ValueId embed() {
    const TensorDesc wanted = {
        options_.dtype,
        {{'B', options_.batch}, {'C', c_.channels}, {'Y', c_.image_height}, {'X', c_.image_width}}};
    const ValueId images = options_.images >= 0 ? options_.images : b_.input("images", wanted);
    VT_CHECK(b_.desc(images) == wanted, "images are %s: expected %s", to_string(b_.desc(images)).c_str(),
             to_string(wanted).c_str());
    const Builder::Scope step(b_, Step::kEmbeddings);
    ValueId x = b_.add<PatchEmbedOp>({images, param("patch_embed.proj.weight")}, "patch_embed");
    if (!c_.pre_norm) x = b_.add<BiasOp>({x, param("patch_embed.proj.bias")}, "patch_embed.bias");
    if (const auto kind = c_.embed_norm_kind())
      x = add_norm(b_, *kind, kEmbedNormEps, norm_inputs(*kind, x, {"patch_embed.norm"}), "patch_embed.norm");
    // A position table with rows for the class token is added after that token is prepended, else before.
    const Builder::Scope scope(b_, ModelPart::kTokens);
    x = c_.pos_for_prefix ? add_positions(add_prefix(x)) : add_prefix(add_positions(x));
    x = dropout(x, "pos_drop");
    return c_.pre_norm ? norm(x, "norm_pre", Step::kEmbeddings) : x;
  }

  ValueId add_prefix(ValueId x) {
    std::vector<ValueId> parts;
    if (c_.class_token) parts.push_back(param("cls_token"));
    if (c_.distilled) parts.push_back(param("dist_token"));
    if (c_.registers > 0) parts.push_back(param("reg_token"));
    if (parts.empty()) return x;
    parts.push_back(x);
    return b_.add<ConcatTokensOp>(parts, "tokens");
  }

  ValueId add_positions(ValueId x) {
    if (c_.pos == PosKind::kNone) return x;
    const ValueId table = c_.pos == PosKind::kLearned
                              ? param("pos_embed")
                              : b_.add<SincosPositionsOp>({}, "positions", c_.grid_height(), c_.grid_width(),
                                                          c_.width, options_.dtype);
    return b_.add<BiasOp>({x, table}, "pos_embed");
  }

  // Returns whether the last block computes its output for the class token only: in a model of twelve blocks,
  // the rest of that block except queries, keys and values is 6 % of the work.
  bool class_token_alone() const { return reads_class_token_alone(c_) && !options_.layers; }

  ValueId block(ValueId x, int64_t index) {
    const Builder::Scope scope(b_, block_name(index), static_cast<int>(index));
    const bool alone = index == c_.depth - 1 && class_token_alone();
    const ValueId answers = attend(norm(x, "norm1", Step::kNorm1), index,
                                   alone ? QueryScope::kClassToken : QueryScope::kAllTokens);
    if (alone) x = b_.add<SelectTokenOp>({x}, {"attn.class", Step::kAttention}, 0);
    x = residual(x, answers, index, "ls1", "attn.residual", ModelPart::kAttention);
    return residual(x, mlp(norm(x, "norm2", Step::kNorm2)), index, "ls2", "mlp.residual", ModelPart::kMlp);
  }

  ValueId residual(ValueId x, ValueId branch, int64_t index, const std::string& scale,
                   const std::string& name, ModelPart part) {
    const Builder::Scope step(b_, part == ModelPart::kAttention ? Step::kResidual1 : Step::kResidual2);
    if (c_.layer_scale) branch = b_.add<ScaleOp>({branch, param(scale + ".gamma")}, scale);
    const Builder::Scope scope(b_, part);
    const double depth_share =
        c_.depth > 1 ? static_cast<double>(index) / static_cast<double>(c_.depth - 1) : 0.0;
    branch = drop(branch, options_.drop_path * depth_share, DropUnit::kSample, name + ".drop_path");
    return b_.add<AddOp>({x, branch}, name);
  }

  static std::string block_name(int64_t block) { return "blocks." + std::to_string(block); }

  ValueId attend(ValueId x, int64_t block, QueryScope queries) {
    const Builder::Scope scope(b_, "attn", ModelPart::kAttention), rest(b_, Step::kAttention);
    ValueId qkv = linear(x, "qkv", Step::kQkv, c_.qkv_bias);
    if (c_.qk_norm)
      qkv = add_qk_norm(b_, c_, norm_inputs(c_.norm, qkv, {"q_norm", "k_norm"}), {"qk_norm", Step::kQkv});
    if (options_.attention && (options_.attention_block < 0 || options_.attention_block == block))
      b_.output(block_name(block) + ".attention", b_.add<AttentionProbsOp>({qkv}, "probs"));
    const ValueId heads = b_.add<AttentionOp>({qkv}, {"softmax", Step::kScores}, queries);
    return dropout(
        linear(c_.attn_norm ? norm(heads, "norm", Step::kAttention) : heads, "proj", Step::kProjection),
        "drop");
  }

  ValueId mlp(ValueId x) {
    // The steps of a block are told apart; pooling with its own MLP is none.
    const auto step = [&](Step own) { return b_.in_block() ? own : Step::kNone; };
    const Builder::Scope scope(b_, "mlp", ModelPart::kMlp), rest(b_, step(Step::kMlp));
    const Step act = c_.activation == ActKind::kGelu ? Step::kGelu : Step::kMlp;
    x = add_activation(b_, linear(x, "fc1", step(Step::kFc1)), c_.activation, c_.gelu, step(act));
    x = dropout(x, "drop1");
    if (c_.mlp_norm && b_.in_block()) x = norm(x, "norm", Step::kMlp);
    return dropout(linear(x, "fc2", step(Step::kFc2)), "drop2");
  }

  // Multihead attention pooling: a learned query attends to all patches, then an MLP with a residual.
  ValueId map_pool(ValueId x) {
    const Builder::Scope scope(b_, "attn_pool");
    if (c_.prefix_tokens() > 0 && !c_.pool_prefix)
      x = b_.add<DropTokensOp>({x}, "patches", c_.prefix_tokens());
    const ValueId q = linear(param("latent"), "q");
    const ValueId kv = linear(x, "kv");
    ValueId y = linear(b_.add<AttentionOp>({q, kv}, "softmax"), "proj");
    y = b_.add<AddOp>({y, mlp(norm(y, "norm", Step::kNone))}, "residual");
    return b_.add<SelectTokenOp>({y}, "select", 0);
  }

  ValueId select(ValueId x, int64_t index) {
    return b_.add<SelectTokenOp>({x}, index == 0 ? "class" : "distillation", index);
  }

  ValueId pool(ValueId x) {
    const int64_t first = c_.pool_prefix || c_.pool == Pool::kPrr ? 0 : c_.prefix_tokens();
    const auto mean = [&] { return b_.add<MeanTokensOp>({x}, "mean", first); };
    const auto max = [&] { return b_.add<MaxTokensOp>({x}, "max", first); };
    switch (c_.pool) {
      case Pool::kCls:
        return class_token_alone() ? x : select(x, 0);
      case Pool::kMean:
        return mean();
      case Pool::kMap:
        return map_pool(x);
      case Pool::kMax:
        return max();
      case Pool::kMeanMax:
        return b_.add<AverageOp>({mean(), max()}, "mean_max");
      case Pool::kPrr:
        x = b_.add<SelfAttentionOp>({x}, "prr", c_.heads);
        return c_.class_token ? select(x, 0) : mean();
    }
    throw Error(ErrorKind::kInternal, "unknown pooling");
  }

  struct Pooled {
    ValueId feature = -1, distilled = -1;
  };
  Pooled pool_heads(ValueId tokens) {
    Pooled pooled{pool(tokens), c_.distilled ? select(tokens, 1) : -1};
    if (c_.norm_place == NormPlace::kAfterPool)
      pooled.feature = norm(pooled.feature, "fc_norm", Step::kLastNorm);
    if (c_.pre_logits) {
      const Builder::Scope scope(b_, "pre_logits");
      pooled.feature =
          add_activation(b_, linear(pooled.feature, "fc"), c_.pre_logits_act, c_.pre_logits_gelu);
    }
    return pooled;
  }

  Builder& b_;
  const VitConfig& c_;
  VitRecordOptions options_;
  std::map<std::string, ParamSpec> specs_;
  VitValues values_;
};

void require_recordable(const VitConfig& config, const VitRecordOptions& options) {
  validate(config);
  validate(options.lora);
  VT_REQUIRE(options.batch >= 1 && options.batch <= 1 << 24, ErrorKind::kConfig,
             "batch %lld is not between 1 and %d", static_cast<long long>(options.batch), 1 << 24);
}

}  // namespace

Program record_vit(const VitConfig& config, const VitRecordOptions& options) {
  require_recordable(config, options);
  Builder builder;
  VitRecorder recorder(builder, config, options);
  recorder.record_heads(recorder.record_body());
  recorder.record_outputs();
  return builder.finish();
}

VitValues record_vit_for_training(Builder& builder, const VitConfig& config,
                                  const VitRecordOptions& options) {
  require_recordable(config, options);
  VitRecorder recorder(builder, config, options);
  return recorder.record_heads(recorder.record_body());
}

}  // namespace vitrail
