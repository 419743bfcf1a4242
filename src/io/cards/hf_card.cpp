#include <algorithm>

#include "base/error.h"
#include "base/text.h"
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

// Refuses other families.
bool is_deit(const Json& config) {
  const Json* type = json_find(config, "model_type");
  if (!type) return false;
  const std::string name = json_string(*type, kFile, "model_type");
  if (name == "vit" || name == "deit") return name == "deit";
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

// What the image processors of transformers do where a config is silent.
struct Processor {
  const char* name;  // part of the class name
  bool number_is_shorter_side, crops;
  int64_t size;  // resized to, for a crop of 224
  Interpolation interpolation;
  bool clip_colours;
};
constexpr Processor kProcessors[] = {
    {"ViT", false, false, 224, Interpolation::kBilinear, false},
    {"DeiT", false, true, 256, Interpolation::kBicubic, false},
    {"CLIP", true, true, 224, Interpolation::kBicubic, true},
};

const Processor& find_processor(const Json* pictures, bool deit, Claims* claims) {
  const Processor& usual = kProcessors[deit ? 1 : 0];
  claims->pictures_origin = kPictures;
  if (!pictures) {
    claims->pictures_origin = strf("the defaults of transformers' %sImageProcessor", usual.name);
    claims->pictures_warning = "there is no preprocessor_config.json";
    return usual;
  }
  for (const char* key : {"image_processor_type", "feature_extractor_type"})
    if (const Json* type = json_find(*pictures, key)) {
      const std::string name = json_string(*type, kPictures, key);
      for (const Processor& row : kProcessors)
        if (name.starts_with(row.name)) return row;
      claims->pictures_warning = quoted(name) + " is not known; what its config leaves out is guessed";
    }
  return usual;
}

Side resized_to(const Json& pictures, const Processor& processor, const PreprocessConfig& p,
                ResizeMode* mode) {
  const Json* size = json_find(pictures, "size");
  *mode = processor.number_is_shorter_side ? ResizeMode::kShorterSide : ResizeMode::kStretchCrop;
  if (!size) return {p.height * processor.size / 224, p.width * processor.size / 224};
  if (const Json* edge = json_find(*size, "shortest_edge")) {
    const int64_t side = json_int(*edge, kPictures, "size");
    *mode = ResizeMode::kShorterSide;
    return {side, side};
  }
  if (!size->is_number()) *mode = ResizeMode::kStretchCrop;
  return read_side(*size, kPictures, "size");
}

// `p` comes with the model's own size as its crop.
void read_geometry(const Json& pictures, const Processor& processor, Claims* claims, PreprocessConfig* p) {
  const Side resized = resized_to(pictures, processor, *p, &p->mode);
  const Json* crop = json_find(pictures, "crop_size");
  const bool crops = flag(pictures, "do_center_crop", processor.crops);
  if (crops && crop) {
    const Side cropped = read_side(*crop, kPictures, "crop_size");
    p->height = cropped.height;
    p->width = cropped.width;
  } else if (!crops && p->mode == ResizeMode::kStretchCrop) {
    p->height = resized.height;
    p->width = resized.width;
  }
  set_resize_sides({resized.height, resized.width}, p);
  p->odd_margin = OddMargin::kDown;
  if (p->mode == ResizeMode::kStretchCrop && resized.height == p->height && resized.width == p->width) {
    p->mode = ResizeMode::kStretch;
    p->resize = p->resize_longer = 0;
    p->odd_margin = OddMargin::kHalfEven;
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

PreprocessConfig read_preprocess(const Json* file, bool deit, Side image, int64_t channels, Claims* claims) {
  const Processor& processor = find_processor(file, deit, claims);
  const Json silent = Json::object();
  const Json& pictures = file ? *file : silent;
  // What is out of range here is refused as the model's size.
  const auto bounded = [](int64_t side) { return std::clamp<int64_t>(side, 1, 1 << 20); };
  PreprocessConfig p{.height = bounded(image.height),
                     .width = bounded(image.width),
                     .interpolation = processor.interpolation};
  p.mean.assign(static_cast<size_t>(std::clamp<int64_t>(channels, 0, 4096)), 0.5);
  p.std = p.mean;
  if (processor.clip_colours) {
    p.mean = {0.48145466, 0.4578275, 0.40821073};
    p.std = {0.26862954, 0.26130258, 0.27577711};
  }
  read_geometry(pictures, processor, claims, &p);
  if (const Json* code = json_find(pictures, "resample")) p.interpolation = read_resample(*code);
  read_normalisation(pictures, &p);
  return p;
}

// The activation after a base model's pooler; classifiers have no pooler.
void require_tanh_pooler(const Json& config) {
  const Json *act = json_find(config, "pooler_act"), *kinds = json_find(config, "architectures");
  if (!act || (kinds && kinds->dump().find("ForImageClassification") != std::string::npos)) return;
  const std::string name = json_string(*act, kFile, "pooler_act");
  VT_REQUIRE(name == "tanh", ErrorKind::kData, "config.json: pooler_act is %s; only tanh is supported",
             quoted(name).c_str());
}

void read_problem_type(const Json& config, Claims* claims) {
  const Json* value = json_find(config, "problem_type");
  if (!value) return;
  const std::string name = json_string(*value, kFile, "problem_type");
  const bool several = name == "multi_label_classification";
  claims->scores = several ? ScoreKind::kSigmoid : ScoreKind::kSoftmax;
  if (!several && name != "single_label_classification")
    claims->notes.push_back(
        strf("problem_type %s is no classification; scored by softmax all the same", quoted(name).c_str()));
}

}  // namespace

Claims hf_claims(const Json& config, const Json* preprocessor) {
  Claims claims{.origin = kFile};
  const bool deit = is_deit(config);
  require_tanh_pooler(config);
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
  read_problem_type(config, &claims);
  const int64_t channels = claims.model.value("channels", int64_t{3});
  claims.preprocess = read_preprocess(preprocessor, deit, image, channels, &claims);
  return claims;
}

}  // namespace vitrail
