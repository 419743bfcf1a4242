// Reads a config.json of timm: its architecture, pretrained_cfg and labels.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/cards/hf_processor.h"
#include "io/config_json.h"
#include "models/zoo.h"

namespace vitrail {

namespace {

constexpr const char* kFile = "config.json";

void read_crop(const Json& cfg, StatedConfig* stated, PreprocessConfig* p) {
  const Json* mode = json_find(cfg, "crop_mode");
  const std::string name = mode ? json_string(*mode, kFile, "crop_mode") : "center";
  VT_REQUIRE(name == "center" || name == "squash" || name == "border", ErrorKind::kData,
             "config.json: crop_mode is \"%s\"; center, squash and border are supported", name.c_str());
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
  p->mode = name == "squash"   ? ResizeMode::kStretchCrop
            : name == "border" ? ResizeMode::kLongerSide
                               : ResizeMode::kShorterSide;
  p->crop_pct = crop;
  set_resize_sides({side_before_crop(p->height, crop), side_before_crop(p->width, crop)}, p);
  if (p->mode != ResizeMode::kShorterSide || p->resize_longer == 0 || p->resize_longer == p->resize) return;
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
  return value ? timm_truth(*value, key) : otherwise;
}

// Where patches do not cover the image, timm refuses it; Vitrail ignores the remaining pixels.
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
  // Such a model resizes its positions as it runs; FlexiViT's own rule is that of loading.
  if (any) stated->model["pos_resize"] = enum_name(PosResize::kTimm);
  const bool pads = flag(args, "dynamic_img_pad", false);
  // timm resizes positions only in a model for any size.
  stated->pads_images = pads && (any || stated->model.at("pos") == enum_name(PosKind::kNone));
  if ((any || pads) && !stated->pads_images)
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
  for (const char* field : {"pre_logits", "representation"})
    stated.model.erase(field);  // timm's configs do not say; the tensors do
  if (cfg) read_pretrained_cfg(*cfg, &stated);
  for (const Json* object : {cfg, &config})
    if (const Json* classes = object ? json_find(*object, "num_classes") : nullptr)
      stated.model["classes"] = json_int(*classes, kFile, "num_classes");
  // That of the whole is for information.
  if (const Json* pool = cfg ? json_find(*cfg, "global_pool") : nullptr) set_timm_pool(*pool, &stated);
  const Json* args = json_find(config, "model_args");
  if (args) read_timm_args(*args, &stated);
  fit_preprocess(name.substr(0, name.find('.')), args, &stated);
  if (cfg) read_label_names(*cfg, cfg == &config ? "labels" : "label_names", kFile, &stated);
  read_label_names(config, "label_names", kFile, &stated);
  if (stated.labels.empty()) stated.labels = read_labels(config, kFile);
  if (const Json* type = json_find(config, "model_type"); type && *type == "timm_wrapper")
    read_hf_scores(config, &stated);
  stated.drops_pre_logits = !config.contains("vitrail");
  return stated;
}

}  // namespace vitrail
