// Writes a config.json that timm reads.
#include "io/cards/written_json.h"

#include <cmath>

#include "io/cards/hf_processor.h"

namespace vitrail {

namespace {

const char* pool_name(Pool pool) {
  constexpr const char* kPoolNames[] = {"token", "avg", "map", "max", "avgmax", "prr"};
  return kPoolNames[static_cast<size_t>(pool)];
}

const char* norm_name(NormKind kind) {
  constexpr const char* kNormNames[] = {"layernorm", "rmsnorm", "simplenorm"};
  return kNormNames[static_cast<size_t>(kind)];
}

Json model_args(const VitConfig& c) {
  Json args = {{"img_size", {c.image_height, c.image_width}},
               {"patch_size", c.patch_width > 0 ? Json{c.patch, c.patch_width} : Json(c.patch)},
               {"in_chans", c.channels},
               {"embed_dim", c.width},
               {"depth", c.depth},
               {"num_heads", c.heads},
               {"mlp_ratio", static_cast<double>(c.mlp) / static_cast<double>(c.width)},
               {"qkv_bias", c.qkv_bias},
               {"qk_norm", c.qk_norm},
               {"act_layer", activation_name(c.activation, c.gelu, Dialect::kTimm)},
               {"num_classes", c.classes}};
  if (c.pre_norm) args["pre_norm"] = true;
  if (c.norm != NormKind::kLayer) args["norm_layer"] = norm_name(c.norm);
  if (const auto kind = c.embed_norm_kind()) args["embed_norm_layer"] = norm_name(*kind);
  if (c.attn_norm) args["scale_attn_norm"] = true;
  if (c.mlp_norm) args["scale_mlp_norm"] = true;
  if (c.pos == PosKind::kNone) args["pos_embed"] = "none";
  if (c.norm_place == NormPlace::kNone) args["final_norm"] = false;
  if (c.layer_scale) args["init_values"] = 1e-5;
  if (c.distilled) return args;
  args["class_token"] = c.class_token;
  args["global_pool"] = pool_name(c.pool);
  args["fc_norm"] = c.norm_place == NormPlace::kAfterPool;
  args["reg_tokens"] = c.registers;
  args["no_embed_class"] = !c.pos_for_prefix;
  if (c.pool_prefix) args["pool_include_prefix"] = true;
  return args;
}

// Returns the share from which timm computes the same side before the crop, rounded down.
double crop_pct(const PreprocessConfig& p) {
  if (p.mode == ResizeMode::kStretch) return 1;
  if (p.crop_pct > 0) return p.crop_pct;
  const int64_t side = resize_sides(p).height;
  double share = static_cast<double>(p.height) / static_cast<double>(side);
  while (side_before_crop(p.height, share) < side) share = std::nextafter(share, 0.0);
  return share;
}

const char* crop_mode(ResizeMode mode) {
  if (mode == ResizeMode::kLongerSide) return "border";
  return mode == ResizeMode::kShorterSide ? "center" : "squash";
}

Json pretrained_cfg(const ModelCard& card) {
  const PreprocessConfig& p = card.preprocess;
  Json cfg = {{"input_size", {card.config.channels, p.height, p.width}},
              {"interpolation", enum_name(p.interpolation)},
              {"crop_pct", crop_pct(p)},
              {"crop_mode", crop_mode(p.mode)},
              {"mean", p.mean},
              {"std", p.std},
              {"num_classes", card.config.classes}};
  if (!card.labels.empty()) cfg["label_names"] = card.labels;
  return cfg;
}

}  // namespace

Json timm_config_json(const ModelCard& card) {
  const VitConfig& c = card.config;
  const char* family = c.distilled ? "deit_base_distilled_patch16_224" : "vit_base_patch16_224";
  return {{"architecture", c.arch.empty() ? family : c.arch},
          {"num_classes", c.classes},
          {"num_features", c.width},
          {"model_args", model_args(c)},
          {"pretrained_cfg", pretrained_cfg(card)}};
}

}  // namespace vitrail
