// The configuration of a ViT, as data: the fields that fix its parameters and its numerics. Knows neither
// files nor computation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "ops/act_kind.h"

namespace vitrail {

// Says how tokens are pooled to the feature vector; kMeanMax is the average of mean and max pooling. kPrr
// (timm's patch representation refinement) lets all tokens attend to one another without weights, then takes
// the class token, or the mean of all where there is none.
enum class Pool { kCls, kMean, kMap, kMax, kMeanMax, kPrr };
enum class GeluKind { kErf, kTanh };
enum class PosKind { kLearned, kSinCos2d, kNone };
// LayerNorm, or one without a bias: RMSNorm, and timm's SimpleNorm, which divides by the deviation.
enum class NormKind { kLayer, kRms, kSimple };
// A norm of the patches alone, before positions and other tokens: none, or a NormKind, in its order.
enum class EmbedNorm { kNone, kLayer, kRms, kSimple };
// The five published rules for resizing a position table (no two are equal).
enum class PosResize { kTimm, kHf, kTorchvision, kJax, kFlexivit };
// The position of the last norm: on all tokens before pooling, on the pooled vector (timm's fc_norm), or
// none.
enum class NormPlace { kBeforePool, kAfterPool, kNone };

template <>
struct EnumNames<Pool> {
  static constexpr const char* names[] = {"cls", "mean", "map", "max", "mean_max", "prr"};
};
template <>
struct EnumNames<GeluKind> {
  static constexpr const char* names[] = {"erf", "tanh"};
};
template <>
struct EnumNames<PosKind> {
  static constexpr const char* names[] = {"learned", "sincos2d", "none"};
};
template <>
struct EnumNames<NormKind> {
  static constexpr const char* names[] = {"layer", "rms", "simple"};
};
template <>
struct EnumNames<EmbedNorm> {
  static constexpr const char* names[] = {"none", "layer", "rms", "simple"};
};
template <>
struct EnumNames<PosResize> {
  static constexpr const char* names[] = {"timm", "hf", "torchvision", "jax", "flexivit"};
};
template <>
struct EnumNames<NormPlace> {
  static constexpr const char* names[] = {"before_pool", "after_pool", "none"};
};

struct VitConfig {
  std::string arch;  // timm's name when it is a known one, else empty

  int64_t image_height = 224, image_width = 224;
  int64_t patch = 16;       // rows of a patch; pixels beyond the last whole patch are ignored
  int64_t patch_width = 0;  // its columns; 0: as many as rows
  int64_t channels = 3;
  int64_t width = 768;
  int64_t depth = 12;
  int64_t heads = 12;
  int64_t mlp = 3072;
  int64_t classes = 1000;  // 0: no head, the output is the pooled feature

  Pool pool = Pool::kCls;
  NormPlace norm_place = NormPlace::kBeforePool;
  bool pool_prefix = false;  // mean, max and map pool the tokens before the patches too
  bool class_token = true;
  bool distilled = false;      // DeiT's second token and head; outputs are averaged
  int64_t registers = 0;       // register tokens after the class token
  bool pos_for_prefix = true;  // the position table has rows for the tokens before the patches too
  PosKind pos = PosKind::kLearned;
  bool qkv_bias = true;
  bool qk_norm = false;    // a norm over each head of q and k
  bool attn_norm = false;  // a norm of what attention gathered, before its projection
  bool mlp_norm = false;   // a norm within the MLP, after the activation
  bool layer_scale = false;
  bool pre_norm = false;       // a norm on all tokens before the blocks; the patch embedding then has no bias
  bool pre_logits = false;     // linear and activation before the head
  int64_t representation = 0;  // outputs of pre_logits; 0: as many as the width
  ActKind pre_logits_act = ActKind::kTanh;
  GeluKind pre_logits_gelu = GeluKind::kErf;
  EmbedNorm embed_norm = EmbedNorm::kNone;

  double norm_eps = 1e-6;
  NormKind norm = NormKind::kLayer;
  ActKind activation = ActKind::kGelu;
  GeluKind gelu = GeluKind::kErf;
  PosResize pos_resize = PosResize::kTimm;

  int64_t grid_height() const { return image_height / patch; }
  int64_t grid_width() const { return image_width / patch_columns(); }
  int64_t patch_columns() const { return patch_width > 0 ? patch_width : patch; }
  std::optional<NormKind> embed_norm_kind() const {
    if (embed_norm == EmbedNorm::kNone) return std::nullopt;
    return static_cast<NormKind>(static_cast<int>(embed_norm) - 1);
  }
  int64_t head_size() const { return width / heads; }
  // The number of features the head reads.
  int64_t representation_size() const { return pre_logits && representation > 0 ? representation : width; }
  // The number of tokens before the patches: class, distillation, registers.
  int64_t prefix_tokens() const { return (class_token ? 1 : 0) + (distilled ? 1 : 0) + registers; }
  // The number of rows of the position table before those of the grid.
  int64_t pos_prefix_rows() const { return pos_for_prefix ? prefix_tokens() : 0; }
  int64_t tokens() const { return prefix_tokens() + grid_height() * grid_width(); }

  bool operator==(const VitConfig&) const = default;
};

// Throws Error(kConfig) naming the broken rule. Every config from a file or a user must pass it before use:
// every extent is then small enough that no product in the parameter table overflows.
void validate(const VitConfig& config);

// Returns the same model with 0 where an extent repeats the one it defaults to, which is what the tensors of
// a file say.
VitConfig without_repeated_extents(VitConfig config);

// Returns whether every pixel lies in a patch.
bool patches_cover(const VitConfig& config);
// Published models may leave pixels out; sizes that a user sets must not: Error(kConfig).
void require_patches_cover(const VitConfig& asked, const VitConfig& published);

// Lists the fields once: Visitor is called as v(name, field, help), to read, write, print and document them.
template <typename Config, typename Visitor>
void visit_fields(Config& c, Visitor&& v) {
  v("arch", c.arch, "timm's architecture name");
  v("image_height", c.image_height, "input rows");
  v("image_width", c.image_width, "input columns");
  v("patch", c.patch, "patch size in pixels");
  v("patch_width", c.patch_width, "columns of a patch that is not square; 0 is as many as rows");
  v("channels", c.channels, "input channels");
  v("width", c.width, "width of the residual stream (D)");
  v("depth", c.depth, "number of blocks");
  v("heads", c.heads, "attention heads (H)");
  v("mlp", c.mlp, "hidden width of the MLP (F)");
  v("classes", c.classes, "classes (K); 0 leaves out the head");
  v("pool", c.pool, "cls, mean, map, max, mean_max or prr");
  v("norm_place", c.norm_place, "before_pool, after_pool or none");
  v("pool_prefix", c.pool_prefix, "mean, max and map pooling take the tokens before the patches too");
  v("class_token", c.class_token, "has a class token");
  v("distilled", c.distilled, "has DeiT's distillation token and head");
  v("registers", c.registers, "register tokens");
  v("pos_for_prefix", c.pos_for_prefix, "the position table has rows for the tokens before the patches too");
  v("pos", c.pos, "learned, sincos2d or none");
  v("qkv_bias", c.qkv_bias, "q, k and v have biases");
  v("qk_norm", c.qk_norm, "a norm on q and k per head");
  v("attn_norm", c.attn_norm, "a norm before the projection of attention");
  v("mlp_norm", c.mlp_norm, "a norm after the activation of the MLP");
  v("layer_scale", c.layer_scale, "a learned scale on each branch");
  v("pre_norm", c.pre_norm, "a norm before the blocks");
  v("pre_logits", c.pre_logits, "linear and activation before the head");
  v("representation", c.representation, "outputs of pre_logits; 0 is as many as the width");
  v("pre_logits_act", c.pre_logits_act, "the activation of pre_logits");
  v("pre_logits_gelu", c.pre_logits_gelu, "erf or tanh: the form of the gelu of pre_logits");
  v("embed_norm", c.embed_norm, "a norm of the patches before positions: none, layer, rms or simple");
  v("norm_eps", c.norm_eps, "layernorm epsilon");
  v("norm", c.norm, "layer, rms or simple");
  v("activation", c.activation,
    "gelu, relu, relu6, leaky_relu, elu, silu, mish, quick_gelu, hard_swish, tanh, sigmoid, selu, "
    "hard_sigmoid, hard_mish, identity, laplace, relu2, sqrt_softplus or gelu_10");
  v("gelu", c.gelu, "erf or tanh: the form of the gelu");
  v("pos_resize", c.pos_resize, "timm, hf, torchvision, jax or flexivit: how positions are resized");
}

}  // namespace vitrail
