// Reads a config.json of timm: its architecture, constructor arguments, pretrained_cfg and labels.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/cards/hf_processor.h"
#include "io/cards/stated_config.h"
#include "io/config_json.h"
#include "models/zoo.h"

namespace vitrail {

namespace {

constexpr const char* kFile = "config.json";

struct ArgRow {
  const char* key;
  const char* field;
};
// Constructor arguments that set one field each.
constexpr ArgRow kIntArgs[] = {{"embed_dim", "width"},     {"depth", "depth"},
                               {"num_heads", "heads"},     {"in_chans", "channels"},
                               {"num_classes", "classes"}, {"reg_tokens", "registers"}};
constexpr ArgRow kBoolArgs[] = {{"class_token", "class_token"},
                                {"qkv_bias", "qkv_bias"},
                                {"qk_norm", "qk_norm"},
                                {"pre_norm", "pre_norm"},
                                {"scale_attn_norm", "attn_norm"},
                                {"scale_mlp_norm", "mlp_norm"},
                                {"pool_include_prefix", "pool_prefix"}};
constexpr ArgRow kPools[] = {
    {"token", "cls"}, {"avg", "mean"}, {"map", "map"}, {"max", "max"}, {"avgmax", "mean_max"}};
constexpr ArgRow kPositions[] = {{"learn", "learned"}, {"none", "none"}, {"", "none"}};
constexpr ArgRow kNorms[] = {{"layernorm", "layer"},   {"layernormfp32", "layer"},
                             {"rmsnorm", "rms"},       {"rmsnormfp32", "rms"},
                             {"simplenorm", "simple"}, {"simplenormfp32", "simple"}};
// Arguments without effect on a trained model's output, or determined by its tensors.
constexpr const char* kHarmless[] = {
    "drop_rate",        "pos_drop_rate",   "patch_drop_rate", "proj_drop_rate",
    "attn_drop_rate",   "drop_path_rate",  "weight_init",     "fix_init",
    "dynamic_img_size", "strict_img_size", "dynamic_img_pad", "pretrained",
    "features_only",    "fc_norm",         "proj_bias",       "pretrained_strict"};
// Arguments that are supported only when they are off.
constexpr const char* kOnlyOff[] = {"use_naflex"};

// Reads a truth value as Python does: some configs hold 1 for true.
bool truth(const Json& value, const std::string& key) {
  return value.is_number() ? json_number(value, kFile, key) != 0 : json_bool(value, kFile, key);
}

std::string named(const Json& value, const char* key, std::span<const ArgRow> rows) {
  const std::string name = json_string(value, kFile, key);
  std::string known;
  for (const ArgRow& row : rows) {
    if (name == row.key) return row.field;
    known += (known.empty() ? "" : ", ") + std::string(row.key);
  }
  throw Error(ErrorKind::kData,
              strf("config.json: %s is %s; supported are %s", key, quoted(name).c_str(), known.c_str()));
}

// Reads 224 or [224, 160].
ImageSize read_sides(const Json& value, const char* key) {
  const bool pair = value.is_array() && value.size() == 2;
  const ImageSize sides{json_int(pair ? value[0] : value, kFile, key),
                        json_int(pair ? value[1] : value, kFile, key)};
  for (const int64_t side : {sides.height, sides.width})
    VT_REQUIRE(side > 0 && side < 1 << 20, ErrorKind::kConfig, "config.json: %s has a side of %lld", key,
               static_cast<long long>(side));
  return sides;
}

bool read_plain_arg(const std::string& key, const Json& value, StatedConfig* stated) {
  for (const ArgRow& row : kIntArgs)
    if (key == row.key) {
      stated->model[row.field] = json_int(value, kFile, key);
      return true;
    }
  for (const ArgRow& row : kBoolArgs)
    if (key == row.key) {
      stated->model[row.field] = truth(value, key);
      return true;
    }
  if (std::find(std::begin(kOnlyOff), std::end(kOnlyOff), key) != std::end(kOnlyOff))
    return !truth(value, key);
  return std::find(std::begin(kHarmless), std::end(kHarmless), key) != std::end(kHarmless);
}

void read_mlp(const Json& args, StatedConfig* stated) {
  const int64_t width = stated->model.at("width");
  if (const Json* ratio = json_find(args, "mlp_ratio")) {
    const double mlp = static_cast<double>(width) * json_number(*ratio, kFile, "mlp_ratio");
    VT_REQUIRE(mlp >= 1 && mlp < 1e9, ErrorKind::kConfig, "config.json: mlp_ratio gives an MLP of %g", mlp);
    stated->model["mlp"] = static_cast<int64_t>(mlp);
  } else if (json_find(args, "embed_dim")) {
    // A share of the width that the architecture alone knows; the tensors tell it.
    stated->model.erase("mlp");
  }
}

// Returns whether an argument names a layer: an empty text leaves the layer to the architecture.
bool is_named(const Json& value) {
  return !value.is_string() || !value.get_ref<const std::string&>().empty();
}

// timm looks norms up in lower case and without underscores.
Json norm_name(const Json& value) {
  std::string name = lowercase(json_string(value, kFile, "norm_layer"));
  std::erase(name, '_');
  return name;
}

// Reads arguments whose effect depends on more than their own value.
bool read_special_arg(const std::string& key, const Json& value, StatedConfig* stated) {
  if (key == "patch_size") {
    const ImageSize sides = read_sides(value, "model_args.patch_size");
    stated->model["patch"] = sides.height;
    stated->model["patch_width"] = sides.width == sides.height ? 0 : sides.width;
  } else if (key == "img_size") {
    const ImageSize sides = read_sides(value, "model_args.img_size");
    stated->model["image_height"] = sides.height;
    stated->model["image_width"] = sides.width;
  } else if (key == "init_values") {
    stated->model["layer_scale"] = truth(value, key);
  } else if (key == "no_embed_class") {
    stated->model["pos_for_prefix"] = !truth(value, key);
  } else if (key == "global_pool") {
    stated->model["pool"] = named(value, "global_pool", kPools);
  } else if (key == "pos_embed") {
    stated->model["pos"] = named(value, "pos_embed", kPositions);
  } else if (key == "final_norm") {
    stated->model.erase("norm_place");
    if (!truth(value, key)) stated->model["norm_place"] = enum_name(NormPlace::kNone);
  } else if (key == "norm_layer") {
    if (is_named(value)) stated->model["norm"] = named(norm_name(value), "norm_layer", kNorms);
  } else if (key == "act_layer") {
    if (is_named(value)) set_activation(value, "act_layer", Dialect::kTimm, stated);
  } else if (key == "attn_layer" || key == "embed_norm_layer") {
    return !is_named(value) || (key == "attn_layer" && value == "attn");
  } else {
    return key == "mlp_ratio";
  }
  return true;
}

void read_model_args(const Json& args, StatedConfig* stated) {
  if (!args.is_object()) wrong_type(kFile, "model_args", args, "an object");
  for (const auto& [key, value] : args.items()) {
    if (value.is_null()) {  // as if it were not there, but for what the architecture says otherwise
      if (key == "init_values") stated->model["layer_scale"] = false;
      continue;
    }
    VT_REQUIRE(read_special_arg(key, value, stated) || read_plain_arg(key, value, stated), ErrorKind::kData,
               "config.json: model_args.%s %s is not understood and may change the result", key.c_str(),
               value.dump().c_str());
  }
  read_mlp(args, stated);
}

void read_crop(const Json& cfg, StatedConfig* stated, PreprocessConfig* p) {
  const Json* mode = json_find(cfg, "crop_mode");
  const std::string name = mode ? json_string(*mode, kFile, "crop_mode") : "center";
  VT_REQUIRE(name == "center" || name == "squash", ErrorKind::kData,
             "config.json: crop_mode is \"%s\"; center and squash are supported", name.c_str());
  const Json* pct = json_find(cfg, "crop_pct");
  const double said = pct ? json_number(*pct, kFile, "crop_pct") : 0;
  const double crop = said != 0 ? said : 0.875;
  VT_REQUIRE(crop >= kLeastCropPct && crop <= kMostCropPct, ErrorKind::kConfig,
             "config.json: crop_pct is %g; it must be between %g and %g", crop, kLeastCropPct, kMostCropPct);
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
  stated->notes.push_back("interpolation bilinear: timm's rule for crops that are not square");
}

// torchvision's Normalize takes one number for every channel.
std::vector<double> read_colours(const Json& value, const char* key, const StatedConfig& stated) {
  std::vector<double> numbers = json_numbers(value, kFile, key);
  const int64_t channels = std::clamp<int64_t>(stated.model.value("channels", int64_t{3}), 1, 4096);
  if (numbers.size() == 1) numbers.resize(static_cast<size_t>(channels), numbers[0]);
  return numbers;
}

void read_pretrained_cfg(const Json& cfg, StatedConfig* stated) {
  if (!cfg.is_object()) wrong_type(kFile, "pretrained_cfg", cfg, "an object");
  PreprocessConfig p = *stated->preprocess;
  p.interpolation = Interpolation::kBicubic;  // timm's defaults
  p.mean = {0.485, 0.456, 0.406};
  p.std = {0.229, 0.224, 0.225};
  if (const Json* size = json_find(cfg, "input_size")) {
    if (!size->is_array() || size->size() != 3)
      wrong_type(kFile, "input_size", *size, "[channels, height, width]");
    p.height = json_int((*size)[1], kFile, "input_size");
    p.width = json_int((*size)[2], kFile, "input_size");
    stated->model["channels"] = json_int((*size)[0], kFile, "input_size");
    stated->model["image_height"] = p.height;
    stated->model["image_width"] = p.width;
  }
  VT_REQUIRE(p.height > 0 && p.width > 0 && p.height < 1 << 20 && p.width < 1 << 20, ErrorKind::kConfig,
             "config.json: input_size %lld x %lld is out of range", static_cast<long long>(p.height),
             static_cast<long long>(p.width));
  if (const Json* value = json_find(cfg, "interpolation"))
    json_assign(*value, kFile, "interpolation", &p.interpolation);
  stated->square_interpolation = p.interpolation;
  read_crop(cfg, stated, &p);
  if (const Json* mean = json_find(cfg, "mean")) p.mean = read_colours(*mean, "mean", *stated);
  if (const Json* std = json_find(cfg, "std")) p.std = read_colours(*std, "std", *stated);
  stated->preprocess = p;
}

// An unknown name is here an error of the file, not of the user; it may name a family that is not supported.
StatedConfig named_config(const std::string& architecture) {
  try {
    StatedConfig stated = architecture_config(architecture, Dialect::kTimm);
    stated.origin = kFile;
    stated.images_origin.clear();
    stated.model["pool"] = enum_name(find_architecture(architecture).config.pool);
    // fc_norm and the pooling decide this together, so the tensors determine it.
    if (stated.model.at("norm_place") != enum_name(NormPlace::kNone)) stated.model.erase("norm_place");
    return stated;
  } catch (const Error& error) {
    throw Error(ErrorKind::kData, "config.json: " + error.message(), error.hint());
  }
}

// timm's architectures that accept images of any size by default.
constexpr const char* kAnySize[] = {"test_vit", "test_vit2", "test_vit4", "vit_intern300m_patch14_448"};

bool flag(const Json* args, const char* key, bool otherwise) {
  const Json* value = args ? json_find(*args, key) : nullptr;
  return value ? truth(*value, key) : otherwise;
}

// Where patches do not cover the image, timm pads or refuses it; Vitrail ignores the remaining pixels.
void require_whole_patches(const ImageSize& image, const StatedConfig& stated) {
  const int64_t rows = stated.model.at("patch"), across = stated.model.at("patch_width");
  VT_REQUIRE(
      rows > 0 && image.height % rows == 0 && image.width % (across > 0 ? across : rows) == 0,
      ErrorKind::kData,
      "config.json: dynamic_img_size or dynamic_img_pad with images of %lld x %lld, which patches of %lld "
      "do not cover",
      static_cast<long long>(image.height), static_cast<long long>(image.width),
      static_cast<long long>(rows));
}

// The model's own size decides, unless it was made for images of any size.
void fit_preprocess(const std::string& architecture, const Json* args, StatedConfig* stated) {
  const PreprocessConfig& p = *stated->preprocess;
  const ImageSize model{stated->model.at("image_height"), stated->model.at("image_width")};
  const bool any =
      flag(args, "dynamic_img_size",
           std::find(std::begin(kAnySize), std::end(kAnySize), architecture) != std::end(kAnySize));
  if (any || flag(args, "dynamic_img_pad", false))
    require_whole_patches(any ? ImageSize{p.height, p.width} : model, *stated);
  if (model == ImageSize{p.height, p.width}) return;
  if (any)
    stated->run_image = {p.height, p.width};
  else
    stated->notes.push_back("preprocessing scaled to model_args.img_size");
  stated->preprocess = at_size(p, model.height, model.width, stated->square_interpolation);
}

}  // namespace

StatedConfig read_timm_config(const Json& config) {
  const Json* cfg = json_find(config, "pretrained_cfg");
  for (const char* key : {"input_size", "crop_pct", "mean", "std", "interpolation"})
    if (!cfg && json_find(config, key)) cfg = &config;  // timm's older form
  const Json* arch = json_find(config, "architecture");
  if (!arch && cfg) arch = json_find(*cfg, "architecture");
  VT_REQUIRE(arch, ErrorKind::kData, "config.json has pretrained_cfg but no architecture");
  const std::string name = json_string(*arch, kFile, "architecture");
  StatedConfig stated = named_config(name);
  stated.model.erase("pre_logits");  // timm's configs do not say; the tensors do
  if (cfg) read_pretrained_cfg(*cfg, &stated);
  for (const Json* object : {cfg, &config})
    if (const Json* classes = object ? json_find(*object, "num_classes") : nullptr)
      stated.model["classes"] = json_int(*classes, kFile, "num_classes");
  // That of the whole is for information.
  if (const Json* pool = cfg ? json_find(*cfg, "global_pool") : nullptr)
    stated.model["pool"] = named(*pool, "global_pool", kPools);
  const Json* args = json_find(config, "model_args");
  if (args) read_model_args(*args, &stated);
  fit_preprocess(name.substr(0, name.find('.')), args, &stated);
  if (cfg) read_label_names(*cfg, cfg == &config ? "labels" : "label_names", kFile, &stated);
  read_label_names(config, "label_names", kFile, &stated);
  if (stated.labels.empty()) stated.labels = read_labels(config, kFile);
  return stated;
}

}  // namespace vitrail
