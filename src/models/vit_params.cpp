#include "models/vit_params.h"

namespace vitrail {

namespace {

// Collects specs under a name prefix.
class List {
 public:
  explicit List(const VitConfig& config) : c_(config), d_('D', config.width) {}

  using Part = ParamPart;
  using Role = ParamRole;

  void add(const std::string& name, Shape shape, Part part, Role role, size_t output_rank = 1) {
    specs.push_back({name, std::move(shape), part, role, output_rank, block_, pools_});
  }
  void norm(const std::string& name, const Shape& dims, NormKind kind) {
    add(name + ".weight", dims, Part::kNorm, Role::kGain);
    if (kind == NormKind::kLayer) add(name + ".bias", dims, Part::kNorm, Role::kBias);
  }
  void norm(const std::string& name, const Shape& dims) { norm(name, dims, c_.norm); }
  void norm(const std::string& name) { norm(name, {d_}); }
  // A linear from `inputs` to `outputs`.
  void linear(const std::string& name, const std::vector<Dim>& outputs, const std::vector<Dim>& inputs,
              Part part, bool bias = true) {
    std::vector<Dim> all = outputs;
    all.insert(all.end(), inputs.begin(), inputs.end());
    add(name + ".weight", Shape(std::move(all)), part, Role::kMatrix, outputs.size());
    if (bias) add(name + ".bias", Shape(outputs), part, Role::kBias);
  }

  void embeddings() {
    linear("patch_embed.proj", {d_}, {{'C', c_.channels}, {'P', c_.patch}, {'Q', c_.patch_columns()}},
           Part::kPatches, !c_.pre_norm);
    if (const auto kind = c_.embed_norm_kind()) norm("patch_embed.norm", {d_}, *kind);
    if (c_.class_token) add("cls_token", {{'S', 1}, d_}, Part::kTokens, Role::kToken);
    if (c_.distilled) add("dist_token", {{'S', 1}, d_}, Part::kTokens, Role::kDistillToken);
    if (c_.registers > 0) add("reg_token", {{'S', c_.registers}, d_}, Part::kTokens, Role::kToken);
    if (c_.pos == PosKind::kLearned)
      add("pos_embed", {{'N', c_.pos_prefix_rows() + c_.grid_height() * c_.grid_width()}, d_}, Part::kTokens,
          Role::kPositions);
    if (c_.pre_norm) norm("norm_pre");
  }

  void mlp(const std::string& at) {
    const Dim f('F', c_.mlp);
    linear(at + "mlp.fc1", {f}, {d_}, Part::kMlp);
    linear(at + "mlp.fc2", {d_}, {f}, Part::kMlp);
  }

  void block(int64_t index) {
    block_ = static_cast<int>(index);
    const std::string at = "blocks." + std::to_string(index) + ".";
    const Dim t('T', 3), h('H', c_.heads), e('E', c_.head_size());
    norm(at + "norm1");
    linear(at + "attn.qkv", {t, h, e}, {d_}, Part::kAttention, c_.qkv_bias);
    if (c_.qk_norm) {
      norm(at + "attn.q_norm", {e});
      norm(at + "attn.k_norm", {e});
    }
    if (c_.attn_norm) norm(at + "attn.norm", {h, e});
    linear(at + "attn.proj", {d_}, {h, e}, Part::kAttention);
    if (c_.layer_scale) add(at + "ls1.gamma", {d_}, Part::kLayerScale, Role::kGain);
    norm(at + "norm2");
    mlp(at);
    if (c_.mlp_norm) norm(at + "mlp.norm", {{'F', c_.mlp}});
    if (c_.layer_scale) add(at + "ls2.gamma", {d_}, Part::kLayerScale, Role::kGain);
    block_ = -1;
  }

  void map_head() {
    pools_ = true;
    const Dim h('H', c_.heads), e('E', c_.head_size()), t('T', 2);
    add("attn_pool.latent", {{'S', 1}, d_}, Part::kTokens, Role::kLatent);
    linear("attn_pool.q", {h, e}, {d_}, Part::kAttention);
    linear("attn_pool.kv", {t, h, e}, {d_}, Part::kAttention);
    linear("attn_pool.proj", {d_}, {h, e}, Part::kAttention);
    norm("attn_pool.norm");
    mlp("attn_pool.");
    pools_ = false;
  }

  void head() {
    if (c_.norm_place == NormPlace::kBeforePool) norm("norm");
    if (c_.pool == Pool::kMap) map_head();
    if (c_.norm_place == NormPlace::kAfterPool) norm("fc_norm");
    const Dim o('O', c_.representation_size());
    if (c_.pre_logits) linear("pre_logits.fc", {o}, {d_}, Part::kPreLogits);
    if (c_.classes == 0) return;
    const Dim k('K', c_.classes), read = c_.pre_logits ? o : d_;
    linear("head", {k}, {read}, Part::kHead);
    if (c_.distilled) linear("head_dist", {k}, {read}, Part::kHead);
  }

  std::vector<ParamSpec> specs;

 private:
  const VitConfig& c_;
  Dim d_;
  int block_ = -1;
  bool pools_ = false;
};

}  // namespace

std::vector<ParamSpec> vit_params(const VitConfig& config) {
  List list(config);
  list.embeddings();
  for (int64_t i = 0; i < config.depth; ++i) list.block(i);
  list.head();
  return std::move(list.specs);
}

int64_t count_params(const VitConfig& config) {
  int64_t total = 0;
  for (const ParamSpec& spec : vit_params(config)) total += spec.shape.elems();
  return total;
}

int64_t count_macs(const VitConfig& c) {
  const int64_t patches = c.grid_height() * c.grid_width(), tokens = c.tokens(), d = c.width;
  const int64_t embed = patches * c.patch * c.patch_columns() * c.channels * d;
  const int64_t block = 4 * tokens * d * d + 2 * tokens * tokens * d + 2 * tokens * d * c.mlp;
  const int64_t pooled = c.pool_prefix ? tokens : patches;
  const int64_t map = c.pool == Pool::kMap ? 2 * (pooled + 1) * d * d + 2 * pooled * d + 2 * d * c.mlp : 0;
  const int64_t refined = c.pool == Pool::kPrr ? 2 * tokens * tokens * d : 0;
  const int64_t pre_logits = c.pre_logits ? d * c.representation_size() : 0;
  const int64_t head = c.representation_size() * c.classes * (c.distilled ? 2 : 1);
  return embed + c.depth * block + map + refined + pre_logits + head;
}

bool reads_class_token_alone(const VitConfig& c) {
  return c.pool == Pool::kCls && !c.distilled && c.depth > 0;
}

int64_t count_run_macs(const VitConfig& c, bool from_tokens) {
  if (!reads_class_token_alone(c)) return count_macs(c);
  const int64_t tokens = c.tokens(), d = c.width;
  const int64_t answers = 2 * tokens * d + d * d + 2 * d * c.mlp;  // of one token: attention, proj and MLP
  const int64_t run = count_macs(c) - (tokens - 1) * answers;
  if (!from_tokens) return run;
  // This counts q, k and v of one token, and, per head instead of all heads together, scores and sums over
  // tokens of width d.
  return run - (tokens - 1) * 3 * d * d + (c.heads - 1) * 2 * tokens * d;
}

}  // namespace vitrail
