#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/cards/claims.h"
#include "io/config_json.h"
#include "io/dialects/refusals.h"

namespace vitrail {

namespace {

constexpr const char* kFile = "config.json";

struct ArgRow {
  const char* key;
  const char* field;
};
// Constructor arguments that set one field each.
constexpr ArgRow kIntArgs[] = {
    {"patch_size", "patch"},  {"embed_dim", "width"},     {"depth", "depth"},         {"num_heads", "heads"},
    {"in_chans", "channels"}, {"num_classes", "classes"}, {"reg_tokens", "registers"}};
constexpr ArgRow kBoolArgs[] = {
    {"class_token", "class_token"}, {"qkv_bias", "qkv_bias"}, {"qk_norm", "qk_norm"}};
// Arguments without effect on a trained model's output.
constexpr const char* kHarmless[] = {
    "drop_rate",       "pos_drop_rate",  "patch_drop_rate", "proj_drop_rate",   "attn_drop_rate",
    "drop_path_rate",  "weight_init",    "fix_init",        "dynamic_img_size", "dynamic_img_pad",
    "strict_img_size", "pretrained",     "features_only",   "img_size",         "mlp_ratio",
    "init_values",     "no_embed_class", "global_pool",     "fc_norm"};

void set_pool(const std::string& name, const Json* fc_norm, Claims* claims) {
  static constexpr ArgRow kPools[] = {{"token", "cls"}, {"avg", "mean"}, {"map", "map"}};
  for (const ArgRow& row : kPools) {
    if (name != row.key) continue;
    const bool changed = claims->model.value("pool", "cls") != row.field;
    claims->model["pool"] = row.field;
    const bool after = fc_norm ? json_bool(*fc_norm, kFile, "fc_norm") : name == "avg";
    if (fc_norm || changed)
      claims->model["norm_place"] = enum_name(after ? NormPlace::kAfterPool : NormPlace::kBeforePool);
    return;
  }
  throw Error(ErrorKind::kData,
              strf("config.json: global_pool is \"%s\"; token, avg and map are supported", name.c_str()));
}

bool is_one_of(const std::string& key, std::span<const char* const> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return key == name; });
}

void read_image(const Json& value, const char* key, Claims* claims) {
  const bool pair = value.is_array() && value.size() == 2;
  claims->model["image_height"] = json_int(pair ? value[0] : value, kFile, key);
  claims->model["image_width"] = json_int(pair ? value[1] : value, kFile, key);
  for (const char* field : {"image_height", "image_width"}) {
    const int64_t side = claims->model[field];
    VT_REQUIRE(side > 0 && side < 1 << 20, ErrorKind::kConfig, "config.json: %s has a side of %lld", key,
               static_cast<long long>(side));
  }
}

void read_model_args(const Json& args, Claims* claims) {
  if (!args.is_object()) wrong_type(kFile, "model_args", args, "an object");
  for (const auto& [key, value] : args.items()) {
    if (value.is_null()) continue;
    bool known = is_one_of(key, kHarmless);
    for (const ArgRow& row : kIntArgs)
      if (key == row.key) claims->model[row.field] = json_int(value, kFile, key), known = true;
    for (const ArgRow& row : kBoolArgs)
      if (key == row.key) claims->model[row.field] = json_bool(value, kFile, key), known = true;
    VT_REQUIRE(known, ErrorKind::kData,
               "config.json: model_args.%s is not understood and may change the result", key.c_str());
  }
  if (const Json* size = json_find(args, "img_size")) read_image(*size, "model_args.img_size", claims);
  const int64_t width = claims->model.at("width");
  if (const Json* ratio = json_find(args, "mlp_ratio")) {
    const double mlp = static_cast<double>(width) * json_number(*ratio, kFile, "mlp_ratio");
    VT_REQUIRE(mlp >= 1 && mlp < 1e9, ErrorKind::kConfig, "config.json: mlp_ratio gives an MLP of %g", mlp);
    claims->model["mlp"] = static_cast<int64_t>(mlp);
  } else if (json_find(args, "embed_dim")) {
    claims->model["mlp"] = width * 4;
  }
  if (json_find(args, "init_values")) claims->model["layer_scale"] = true;
  if (const Json* value = json_find(args, "no_embed_class"))
    claims->model["pos_for_prefix"] = !json_bool(*value, kFile, "no_embed_class");
  if (const Json* value = json_find(args, "global_pool"))
    set_pool(json_string(*value, kFile, "global_pool"), json_find(args, "fc_norm"), claims);
}

void read_crop(const Json& cfg, Claims* claims, PreprocessConfig* p) {
  const Json* mode = json_find(cfg, "crop_mode");
  const std::string name = mode ? json_string(*mode, kFile, "crop_mode") : "center";
  VT_REQUIRE(name == "center" || name == "squash", ErrorKind::kData,
             "config.json: crop_mode is \"%s\"; center and squash are supported", name.c_str());
  const Json* pct = json_find(cfg, "crop_pct");
  const double crop = pct ? json_number(*pct, kFile, "crop_pct") : 0.875;
  VT_REQUIRE(crop >= kLeastCropPct && crop <= 1, ErrorKind::kConfig,
             "config.json: crop_pct is %g; it must be between %g and 1", crop, kLeastCropPct);
  if (name == "squash" && crop == 1) {
    p->mode = ResizeMode::kStretch;
    p->resize = p->resize_longer = 0;
    p->crop_pct = 0;
    return;
  }
  p->mode = name == "squash" ? ResizeMode::kStretchCrop : ResizeMode::kShorterSide;
  p->crop_pct = crop;
  set_resize_sides({side_before_crop(p->height, crop), side_before_crop(p->width, crop)}, p);
  if (p->mode == ResizeMode::kStretchCrop || p->resize_longer == 0 || p->resize_longer == p->resize) return;
  p->interpolation = Interpolation::kBilinear;
  claims->notes.push_back("interpolation bilinear: timm's rule for crops that are not square");
}

void read_pretrained_cfg(const Json& cfg, Claims* claims) {
  if (!cfg.is_object()) wrong_type(kFile, "pretrained_cfg", cfg, "an object");
  PreprocessConfig p = *claims->preprocess;
  p.interpolation = Interpolation::kBicubic;  // timm's defaults
  p.mean = {0.485, 0.456, 0.406};
  p.std = {0.229, 0.224, 0.225};
  if (const Json* size = json_find(cfg, "input_size")) {
    if (!size->is_array() || size->size() != 3)
      wrong_type(kFile, "input_size", *size, "[channels, height, width]");
    p.height = json_int((*size)[1], kFile, "input_size");
    p.width = json_int((*size)[2], kFile, "input_size");
    claims->model["channels"] = json_int((*size)[0], kFile, "input_size");
    claims->model["image_height"] = p.height;
    claims->model["image_width"] = p.width;
  }
  VT_REQUIRE(p.height > 0 && p.width > 0 && p.height < 1 << 20 && p.width < 1 << 20, ErrorKind::kConfig,
             "config.json: input_size %lld x %lld is out of range", static_cast<long long>(p.height),
             static_cast<long long>(p.width));
  if (const Json* value = json_find(cfg, "interpolation"))
    json_assign(*value, kFile, "interpolation", &p.interpolation);
  read_crop(cfg, claims, &p);
  if (const Json* mean = json_find(cfg, "mean")) p.mean = json_numbers(*mean, kFile, "mean");
  if (const Json* std = json_find(cfg, "std")) p.std = json_numbers(*std, kFile, "std");
  claims->preprocess = p;
}

void read_label_names(const Json& object, Claims* claims) {
  const Json* names = json_find(object, "label_names");
  if (!names || !names->is_array()) return;
  claims->labels.clear();
  for (const Json& name : *names) claims->labels.push_back(json_string(name, kFile, "label_names"));
}

// A name the zoo lacks is the file's fault here, not the user's; it may tell a family that is not supported.
Claims named_claims(const std::string& architecture) {
  try {
    Claims claims = architecture_claims(architecture, Dialect::kTimm);
    claims.origin = kFile;
    claims.pictures_origin.clear();
    return claims;
  } catch (const Error& error) {
    refuse_other_families(architecture);
    throw Error(ErrorKind::kData, "config.json: " + error.message(), error.hint());
  }
}

}  // namespace

Claims timm_claims(const Json& config) {
  const Json* cfg = json_find(config, "pretrained_cfg");
  for (const char* key : {"input_size", "crop_pct", "mean", "std", "interpolation"})
    if (!cfg && json_find(config, key)) cfg = &config;  // timm's older form
  const Json* arch = json_find(config, "architecture");
  if (!arch && cfg) arch = json_find(*cfg, "architecture");
  VT_REQUIRE(arch, ErrorKind::kData, "config.json has pretrained_cfg but no architecture");
  const std::string name = json_string(*arch, kFile, "architecture");
  Claims claims = named_claims(name);
  claims.model.erase("pre_logits");  // timm's configs do not say; the tensors do
  if (cfg) read_pretrained_cfg(*cfg, &claims);
  if (const Json* classes = json_find(config, "num_classes"))
    claims.model["classes"] = json_int(*classes, kFile, "num_classes");
  if (const Json* pool = json_find(config, "global_pool"))
    if (const std::string text = json_string(*pool, kFile, "global_pool"); !text.empty())
      set_pool(text, nullptr, &claims);
  if (const Json* args = json_find(config, "model_args")) {
    read_model_args(*args, &claims);
    const PreprocessConfig& p = *claims.preprocess;
    const int64_t height = claims.model.at("image_height"), width = claims.model.at("image_width");
    if (height != p.height || width != p.width) {
      claims.preprocess = at_size(p, height, width);
      claims.notes.push_back("preprocessing scaled to model_args.img_size");
    }
  }
  if (cfg) read_label_names(*cfg, &claims);
  read_label_names(config, &claims);
  return claims;
}

}  // namespace vitrail
