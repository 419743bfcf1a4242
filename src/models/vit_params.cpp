#include "models/vit_params.h"

namespace vitrail {

namespace {

// Collects specs under a name prefix.
class List {
 public:
  explicit List(const VitConfig& config) : c_(config), d_('D', config.width) {}

  void affine(const std::string& name, Dim dim) {
    add(name + ".weight", {dim});
    add(name + ".bias", {dim});
  }
  void norm(const std::string& name) {
    if (c_.norm == NormKind::kLayer) return affine(name, d_);
    add(name + ".weight", {d_});
  }
  void add(const std::string& name, Shape shape) { specs.push_back({name, std::move(shape)}); }

  void embeddings() {
    add("patch_embed.proj.weight", {d_, {'C', c_.channels}, {'P', c_.patch}, {'Q', c_.patch_columns()}});
    if (!c_.pre_norm) add("patch_embed.proj.bias", {d_});
    if (c_.class_token) add("cls_token", {{'S', 1}, d_});
    if (c_.distilled) add("dist_token", {{'S', 1}, d_});
    if (c_.registers > 0) add("reg_token", {{'S', c_.registers}, d_});
    if (c_.pos == PosKind::kLearned)
      add("pos_embed", {{'N', c_.pos_prefix_rows() + c_.grid_height() * c_.grid_width()}, d_});
    if (c_.pre_norm) norm("norm_pre");
  }

  void mlp(const std::string& at) {
    const Dim f('F', c_.mlp);
    add(at + "mlp.fc1.weight", {f, d_});
    add(at + "mlp.fc1.bias", {f});
    add(at + "mlp.fc2.weight", {d_, f});
    add(at + "mlp.fc2.bias", {d_});
  }

  void block(const std::string& at) {
    const Dim t('T', 3), h('H', c_.heads), e('E', c_.head_size());
    norm(at + "norm1");
    add(at + "attn.qkv.weight", {t, h, e, d_});
    if (c_.qkv_bias) add(at + "attn.qkv.bias", {t, h, e});
    if (c_.qk_norm) {
      affine(at + "attn.q_norm", e);
      affine(at + "attn.k_norm", e);
    }
    add(at + "attn.proj.weight", {d_, h, e});
    add(at + "attn.proj.bias", {d_});
    if (c_.layer_scale) add(at + "ls1.gamma", {d_});
    norm(at + "norm2");
    mlp(at);
    if (c_.layer_scale) add(at + "ls2.gamma", {d_});
  }

  void map_head() {
    const Dim h('H', c_.heads), e('E', c_.head_size()), t('T', 2);
    add("attn_pool.latent", {{'S', 1}, d_});
    add("attn_pool.q.weight", {h, e, d_});
    add("attn_pool.q.bias", {h, e});
    add("attn_pool.kv.weight", {t, h, e, d_});
    add("attn_pool.kv.bias", {t, h, e});
    add("attn_pool.proj.weight", {d_, h, e});
    add("attn_pool.proj.bias", {d_});
    norm("attn_pool.norm");
    mlp("attn_pool.");
  }

  void head() {
    if (c_.norm_place == NormPlace::kBeforePool) norm("norm");
    if (c_.pool == Pool::kMap) map_head();
    if (c_.norm_place == NormPlace::kAfterPool) norm("fc_norm");
    const Dim o('O', c_.representation_size());
    if (c_.pre_logits) {
      add("pre_logits.fc.weight", {o, d_});
      add("pre_logits.fc.bias", {o});
    }
    if (c_.classes == 0) return;
    const Dim k('K', c_.classes);
    for (const char* name : {"head", "head_dist"}) {
      if (name == std::string("head_dist") && !c_.distilled) continue;
      add(std::string(name) + ".weight", {k, c_.pre_logits ? o : d_});
      add(std::string(name) + ".bias", {k});
    }
  }

  std::vector<ParamSpec> specs;

 private:
  const VitConfig& c_;
  Dim d_;
};

}  // namespace

std::vector<ParamSpec> vit_params(const VitConfig& config) {
  List list(config);
  list.embeddings();
  for (int64_t i = 0; i < config.depth; ++i) list.block("blocks." + std::to_string(i) + ".");
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
  const int64_t pre_logits = c.pre_logits ? d * c.representation_size() : 0;
  const int64_t head = c.representation_size() * c.classes * (c.distilled ? 2 : 1);
  return embed + c.depth * block + map + pre_logits + head;
}

bool reads_class_token_alone(const VitConfig& c) {
  return c.pool == Pool::kCls && !c.distilled;
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
