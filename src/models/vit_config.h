// What a ViT is, as data: the fields that fix its parameters and its numerics. Filled by the zoo, by a
// weight file's dialect or by a config file; read by vit.cpp, the parameter table and the weight tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace vitrail {

enum class Pool { kCls, kMean, kMap };  // which tokens become the feature vector
enum class GeluKind { kErf, kTanh };
enum class PosKind { kLearned, kSinCos2d };
// The five published rules for resizing a position table (none of them equal).
enum class PosResize { kTimm, kHf, kTorchvision, kJax, kFlexivit };
// Where the last layernorm stands: on all tokens before pooling, or on the pooled vector (timm's fc_norm).
enum class NormPlace { kBeforePool, kAfterPool };

template <>
struct EnumNames<Pool> {
  static constexpr const char* names[] = {"cls", "mean", "map"};
};
template <>
struct EnumNames<GeluKind> {
  static constexpr const char* names[] = {"erf", "tanh"};
};
template <>
struct EnumNames<PosKind> {
  static constexpr const char* names[] = {"learned", "sincos2d"};
};
template <>
struct EnumNames<PosResize> {
  static constexpr const char* names[] = {"timm", "hf", "torchvision", "jax", "flexivit"};
};
template <>
struct EnumNames<NormPlace> {
  static constexpr const char* names[] = {"before_pool", "after_pool"};
};

struct VitConfig {
  std::string arch;  // timm's name when it is a known one, else empty

  int64_t image_height = 224, image_width = 224;
  int64_t patch = 16;
  int64_t channels = 3;
  int64_t width = 768;
  int64_t depth = 12;
  int64_t heads = 12;
  int64_t mlp = 3072;
  int64_t classes = 1000;  // 0: no head, the output is the pooled feature

  Pool pool = Pool::kCls;
  NormPlace norm_place = NormPlace::kBeforePool;
  bool pool_prefix = false;  // mean and map take the tokens before the patches too
  bool class_token = true;
  bool distilled = false;      // DeiT's second token and head; outputs are averaged
  int64_t registers = 0;       // register tokens after the class token
  bool pos_for_prefix = true;  // the position table has rows for the tokens before the patches too
  PosKind pos = PosKind::kLearned;
  bool qkv_bias = true;
  bool qk_norm = false;  // layernorm over each head of q and k
  bool layer_scale = false;
  bool pre_logits = false;  // D-to-D linear and tanh before the head

  double norm_eps = 1e-6;
  GeluKind gelu = GeluKind::kErf;
  PosResize pos_resize = PosResize::kTimm;

  int64_t grid_height() const { return image_height / patch; }
  int64_t grid_width() const { return image_width / patch; }
  int64_t head_size() const { return width / heads; }
  // Tokens before the patches: class, distillation, registers.
  int64_t prefix_tokens() const { return (class_token ? 1 : 0) + (distilled ? 1 : 0) + registers; }
  // Rows of the position table before those of the grid.
  int64_t pos_prefix_rows() const { return pos_for_prefix ? prefix_tokens() : 0; }
  int64_t tokens() const { return prefix_tokens() + grid_height() * grid_width(); }

  bool operator==(const VitConfig&) const = default;
};

// Throws Error(kConfig) naming the rule broken. Call it on anything that came from outside, before use:
// every extent is then small enough that no product in the parameter table overflows.
void validate(const VitConfig& config);

// Lists the fields once: Visitor is called as v(name, field, help). Used to read, write, print and document.
template <typename Config, typename Visitor>
void visit_fields(Config& c, Visitor&& v) {
  v("arch", c.arch, "timm's architecture name");
  v("image_height", c.image_height, "input rows");
  v("image_width", c.image_width, "input columns");
  v("patch", c.patch, "patch size in pixels");
  v("channels", c.channels, "input channels");
  v("width", c.width, "width of the residual stream (D)");
  v("depth", c.depth, "number of blocks");
  v("heads", c.heads, "attention heads (H)");
  v("mlp", c.mlp, "hidden width of the MLP (F)");
  v("classes", c.classes, "classes (K); 0 leaves out the head");
  v("pool", c.pool, "cls, mean or map");
  v("norm_place", c.norm_place, "before_pool or after_pool");
  v("pool_prefix", c.pool_prefix, "mean and map pooling take the tokens before the patches too");
  v("class_token", c.class_token, "has a class token");
  v("distilled", c.distilled, "has DeiT's distillation token and head");
  v("registers", c.registers, "register tokens");
  v("pos_for_prefix", c.pos_for_prefix, "the position table has rows for the tokens before the patches too");
  v("pos", c.pos, "learned or sincos2d");
  v("qkv_bias", c.qkv_bias, "q, k and v have biases");
  v("qk_norm", c.qk_norm, "layernorm on q and k per head");
  v("layer_scale", c.layer_scale, "a learned scale on each branch");
  v("pre_logits", c.pre_logits, "linear and tanh before the head");
  v("norm_eps", c.norm_eps, "layernorm epsilon");
  v("gelu", c.gelu, "erf or tanh");
  v("pos_resize", c.pos_resize, "timm, hf, torchvision, jax or flexivit: how positions are resized");
}

}  // namespace vitrail
