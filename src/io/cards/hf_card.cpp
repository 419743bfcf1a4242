#include <algorithm>

#include "base/error.h"
#include "io/cards/claims.h"
#include "io/config_json.h"
#include "io/dialects/refusals.h"

namespace vitrail {

namespace {

constexpr const char* kFile = "config.json";
constexpr const char* kPictures = "preprocessor_config.json";

struct IntKey {
  const char* key;
  const char* field;
};
constexpr IntKey kIntKeys[] = {{"hidden_size", "width"},
                               {"num_hidden_layers", "depth"},
                               {"num_attention_heads", "heads"},
                               {"intermediate_size", "mlp"},
                               {"num_channels", "channels"}};

struct ActRow {
  const char* name;
  GeluKind gelu;
};
constexpr ActRow kActs[] = {{"gelu", GeluKind::kErf},
                            {"gelu_python", GeluKind::kErf},
                            {"gelu_new", GeluKind::kTanh},
                            {"gelu_pytorch_tanh", GeluKind::kTanh},
                            {"gelu_fast", GeluKind::kTanh},
                            {"gelu_accurate", GeluKind::kTanh},
                            {"gelu_python_tanh", GeluKind::kTanh}};

struct Side {
  int64_t height = 0, width = 0;
};

// 224, [224, 160] or {"height": 224, "width": 160}.
Side read_side(const Json& value, const char* file, const char* key) {
  if (value.is_array()) {
    if (value.size() != 2) wrong_type(file, key, value, "a number or [height, width]");
    return {json_int(value[0], file, key), json_int(value[1], file, key)};
  }
  if (value.is_object()) {
    const Json *height = json_find(value, "height"), *width = json_find(value, "width");
    if (!height || !width) wrong_type(file, key, value, "height and width");
    return {json_int(*height, file, key), json_int(*width, file, key)};
  }
  const int64_t side = json_int(value, file, key);
  return {side, side};
}

GeluKind read_act(const Json& value) {
  const std::string name = json_string(value, kFile, "hidden_act");
  for (const ActRow& row : kActs)
    if (name == row.name) return row.gelu;
  wrong_type(kFile, "hidden_act", value, "gelu, gelu_new, gelu_pytorch_tanh or gelu_fast");
}

void read_model_type(const Json& config) {
  const Json* type = json_find(config, "model_type");
  if (!type) return;
  const std::string name = json_string(*type, kFile, "model_type");
  if (name == "vit" || name == "deit") return;
  refuse_other_families(name);
  throw Error(ErrorKind::kData,
              strf("config.json: model_type is \"%s\"; only vit and deit are supported", name.c_str()));
}

Interpolation read_resample(const Json& value) {
  constexpr Interpolation kCodes[] = {Interpolation::kNearest, Interpolation::kLanczos,
                                      Interpolation::kBilinear, Interpolation::kBicubic, Interpolation::kBox};
  const int64_t code = json_int(value, kPictures, "resample");
  if (code < 0 || code > 4)
    wrong_type(kPictures, "resample", value, "0 nearest, 1 lanczos, 2 bilinear, 3 bicubic or 4 box");
  return kCodes[code];
}

bool flag(const Json& object, const char* key, bool otherwise) {
  const Json* value = json_find(object, key);
  return value ? json_bool(*value, kPictures, key) : otherwise;
}

// Old configs give one number as size: the CLIP kind means the shorter side by it, the ViT kind a stretch.
bool number_means_shorter_side(const Json& pictures) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"})
    if (const Json* type = json_find(pictures, key))
      if (json_string(*type, kPictures, key).find("CLIP") != std::string::npos) return true;
  return false;
}

void read_geometry(const Json& pictures, Claims* claims, PreprocessConfig* p) {
  const Json* size = json_find(pictures, "size");
  const Json* crop = json_find(pictures, "crop_size");
  const bool crops = flag(pictures, "do_center_crop", false) && crop;
  Side resized{p->height, p->width};
  p->mode = ResizeMode::kStretch;
  if (size && size->is_object() && json_find(*size, "shortest_edge")) {
    resized.height = resized.width = json_int(*json_find(*size, "shortest_edge"), kPictures, "size");
    p->mode = ResizeMode::kShorterSide;
  } else if (size) {
    resized = read_side(*size, kPictures, "size");
    if (size->is_number() && number_means_shorter_side(pictures)) p->mode = ResizeMode::kShorterSide;
  }
  if (crops) {
    const Side cropped = read_side(*crop, kPictures, "crop_size");
    p->height = cropped.height;
    p->width = cropped.width;
  } else if (p->mode == ResizeMode::kStretch) {
    p->height = resized.height;
    p->width = resized.width;
  }
  p->resize = std::min(resized.height, resized.width);
  if (p->mode == ResizeMode::kStretch && resized.height == p->height && resized.width == p->width) {
    p->resize = 0;
  } else if (p->mode == ResizeMode::kStretch) {
    p->mode = ResizeMode::kShorterSide;
    claims->notes.push_back(kStretchThenCrop);
  }
  if (!flag(pictures, "do_resize", true))
    claims->notes.push_back("preprocessor_config.json says not to resize; pictures are resized all the same");
}

// Hugging Face: (pixel * factor - mean) / std; ours: (pixel / 255 - mean) / std.
void read_normalisation(const Json& pictures, PreprocessConfig* p) {
  if (const Json* mean = json_find(pictures, "image_mean"))
    p->mean = json_numbers(*mean, kPictures, "image_mean");
  if (const Json* std = json_find(pictures, "image_std")) p->std = json_numbers(*std, kPictures, "image_std");
  if (!flag(pictures, "do_normalize", true)) {
    std::fill(p->mean.begin(), p->mean.end(), 0.0);
    std::fill(p->std.begin(), p->std.end(), 1.0);
  }
  double scale = 1;  // 255 * factor
  if (!flag(pictures, "do_rescale", true))
    scale = 255;
  else if (const Json* factor = json_find(pictures, "rescale_factor"))
    scale = 255 * json_number(*factor, kPictures, "rescale_factor");
  VT_REQUIRE(scale > 0, ErrorKind::kConfig, "%s: rescale_factor must be positive", kPictures);
  if (std::abs(scale - 1) < 1e-6) return;
  for (double& value : p->mean) value /= scale;
  for (double& value : p->std) value /= scale;
}

PreprocessConfig read_preprocess(const Json* pictures, Side image, int64_t channels, Claims* claims) {
  PreprocessConfig p;
  p.height = image.height;
  p.width = image.width;
  p.mode = ResizeMode::kStretch;
  p.resize = 0;
  p.interpolation = Interpolation::kBilinear;
  p.mean.assign(static_cast<size_t>(std::clamp<int64_t>(channels, 0, 4096)), 0.5);
  p.std = p.mean;
  if (!pictures) {
    claims->notes.push_back(
        "no preprocessor_config.json: ViTImageProcessor's defaults (stretch, bilinear, 0.5/0.5)");
    return p;
  }
  read_geometry(*pictures, claims, &p);
  if (const Json* code = json_find(*pictures, "resample")) p.interpolation = read_resample(*code);
  read_normalisation(*pictures, &p);
  return p;
}

}  // namespace

Claims hf_claims(const Json& config, const Json* preprocessor) {
  Claims claims{.origin = kFile};
  read_model_type(config);
  for (const IntKey& row : kIntKeys)
    if (const Json* value = json_find(config, row.key))
      claims.model[row.field] = json_int(*value, kFile, row.key);
  Side image{224, 224};
  if (const Json* value = json_find(config, "image_size")) image = read_side(*value, kFile, "image_size");
  claims.model["image_height"] = image.height;
  claims.model["image_width"] = image.width;
  if (const Json* value = json_find(config, "patch_size")) {
    const Side patch = read_side(*value, kFile, "patch_size");
    if (patch.height != patch.width) wrong_type(kFile, "patch_size", *value, "square patches");
    claims.model["patch"] = patch.height;
  }
  if (const Json* value = json_find(config, "qkv_bias"))
    claims.model["qkv_bias"] = json_bool(*value, kFile, "qkv_bias");
  if (const Json* value = json_find(config, "layer_norm_eps"))
    claims.model["norm_eps"] = json_number(*value, kFile, "layer_norm_eps");
  if (const Json* value = json_find(config, "hidden_act")) claims.model["gelu"] = enum_name(read_act(*value));
  if (const Json* value = json_find(config, "id2label"); value && value->is_object())
    claims.model["classes"] = static_cast<int64_t>(value->size());
  else if (const Json* count = json_find(config, "num_labels"))
    claims.model["classes"] = json_int(*count, kFile, "num_labels");
  claims.labels = read_labels(config, kFile);
  const int64_t channels = claims.model.value("channels", int64_t{3});
  claims.preprocess = read_preprocess(preprocessor, image, channels, &claims);
  return claims;
}

}  // namespace vitrail
