#include "io/cards/hf_processor.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/config_json.h"

namespace vitrail {

namespace {

constexpr const char* kImages = "preprocessor_config.json";

Interpolation read_resample(const Json& value) {
  constexpr Interpolation kCodes[] = {Interpolation::kNearest,  Interpolation::kLanczos,
                                      Interpolation::kBilinear, Interpolation::kBicubic,
                                      Interpolation::kBox,      Interpolation::kHamming};
  const int64_t code = json_int(value, kImages, "resample");
  if (code < 0 || code > 5)
    wrong_type(kImages, "resample", value, "0 nearest, 1 lanczos, 2 bilinear, 3 bicubic, 4 box or 5 hamming");
  return kCodes[code];
}

// Reads a truth value as Python does: null is false where a key left out is not, and some configs hold 1 for
// true.
bool flag(const Json& object, const char* key, bool otherwise) {
  const auto at = object.find(key);
  if (at == object.end()) return otherwise;
  if (at->is_number()) return json_number(*at, kImages, key) != 0;
  return !at->is_null() && json_bool(*at, kImages, key);
}

// What a processor does beside resizing, cropping and normalising as its config says.
enum class Ways {
  kPlain,
  kMargin,       // a shortest edge means that of the crop: images are resized to 256/224 of it
  kCropPct,      // to the shortest edge divided by crop_pct
  kConvNext,     // likewise and cropped to that edge, but from 384 on stretched to it
  kTwice,        // include_top: divided by the deviation twice
  kKeepsAspect,  // keep_aspect_ratio and ensure_multiple_of, when told so
};
enum class Colours { kHalf, kClip, kImageNet };
// The defaults of transformers' image processors for keys that a config leaves out.
struct Processor {
  const char* name;  // the class, without "ImageProcessor"
  bool number_is_shorter_side, crops;
  int64_t size;  // the resized side, for a crop of 224
  Interpolation interpolation;
  Colours colours = Colours::kHalf;
  Ways ways = Ways::kPlain;
};
constexpr Interpolation kLinear = Interpolation::kBilinear, kCubic = Interpolation::kBicubic;
constexpr Processor kProcessors[] = {
    {"ViT", false, false, 224, kLinear},
    {"DeiT", false, true, 256, kCubic},
    {"CLIP", true, true, 224, kCubic, Colours::kClip},
    {"Bit", true, true, 224, kCubic, Colours::kClip},
    {"ViTHybrid", true, true, 224, kCubic, Colours::kClip},
    {"Siglip", true, false, 224, kCubic},
    {"Beit", false, false, 224, kCubic},
    {"Blip", false, false, 384, kCubic, Colours::kClip},
    {"ChineseCLIP", true, true, 224, kCubic, Colours::kClip},
    {"Llava", true, true, 224, kCubic, Colours::kClip},
    {"Flava", false, true, 224, kCubic, Colours::kClip},
    {"OwlViT", false, false, 768, kCubic, Colours::kClip},
    {"LayoutLMv3", false, false, 224, kLinear},
    {"MobileNetV1", true, true, 256, kLinear},
    {"MobileNetV2", true, true, 256, kLinear},
    {"Pvt", false, false, 224, kCubic, Colours::kImageNet},
    {"Segformer", false, false, 512, kLinear, Colours::kImageNet},
    {"DPT", false, false, 384, kCubic, Colours::kHalf, Ways::kKeepsAspect},
    {"Levit", true, true, 224, kCubic, Colours::kImageNet, Ways::kMargin},
    {"PoolFormer", true, true, 224, kCubic, Colours::kImageNet, Ways::kCropPct},
    {"ConvNext", true, true, 384, kCubic, Colours::kImageNet, Ways::kConvNext},
    {"EfficientNet", false, false, 346, kCubic, Colours::kHalf, Ways::kTwice},
};

const Processor& row_named(std::string_view name) {
  return *std::find_if(std::begin(kProcessors), std::end(kProcessors),
                       [&](const Processor& row) { return name == row.name; });
}

// Refuses a key by which a processor does more than this program does, unless it says not to.
void refuse_beyond(const Json& images, const char* key) {
  const Json* value = json_find(images, key);
  if (!value || (value->is_boolean() && !value->get<bool>()) || (value->is_number() && *value == 1)) return;
  throw Error(ErrorKind::kData,
              strf("%s: %s is %s, which is not understood and changes the result", kImages, key,
                   value->dump().c_str()),
              "leave it out if the model was trained without it");
}

void refuse_beyond(const Json& images, Ways ways) {
  refuse_beyond(images, "do_pad");
  if (ways == Ways::kTwice) refuse_beyond(images, "rescale_offset");
  if (ways == Ways::kKeepsAspect)
    for (const char* key : {"keep_aspect_ratio", "ensure_multiple_of"}) refuse_beyond(images, key);
}

// Maps "DeiTImageProcessorFast" to "DeiT".
std::string processor_stem(const std::string& name) {
  for (const char* ending : {"ImageProcessor", "FeatureExtractor"})
    if (const size_t at = name.find(ending); at != std::string::npos) return name.substr(0, at);
  return name;
}

// Every other processor of transformers has ways of its own, which its config does not tell.
const Processor& find_processor(const Json* images, const char* usual_name, StatedConfig* stated) {
  const Processor& usual = row_named(usual_name);
  stated->images_origin = kImages;
  if (!images) {
    stated->images_origin = strf("the defaults of transformers' %sImageProcessor", usual.name);
    stated->images_warning = "there is no preprocessor_config.json";
    return usual;
  }
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const Json* type = json_find(*images, key);
    if (!type) continue;
    const std::string name = json_string(*type, kImages, key), stem = processor_stem(name);
    for (const Processor& row : kProcessors)
      if (stem == row.name) return row;
    throw Error(ErrorKind::kData, strf("%s: what %s does is not known", kImages, quoted(name).c_str()),
                "ViTImageProcessor as its image_processor_type, if images are only resized, cropped and "
                "normalised as the file says");
  }
  return usual;
}

// Returns whether sizes are divided by crop_pct: null says that they are not.
bool has_crop_pct(const Json& images, const Processor& processor) {
  const auto at = images.find("crop_pct");
  return processor.ways == Ways::kCropPct && (at == images.end() || !at->is_null());
}

// The shortest edge that images are resized to where the config names `edge`.
int64_t resized_edge(const Json& images, const Processor& processor, int64_t edge) {
  const auto share = [&](double otherwise) {
    const Json* pct = json_find(images, "crop_pct");
    const double crop = pct ? json_number(*pct, kImages, "crop_pct") : otherwise;
    VT_REQUIRE(crop >= kLeastCropPct && crop <= kMostCropPct, ErrorKind::kConfig,
               "%s: crop_pct is %g; it must be between %g and %g", kImages, crop, kLeastCropPct,
               kMostCropPct);
    return static_cast<int64_t>(static_cast<double>(edge) / crop);
  };
  if (processor.ways == Ways::kMargin) return static_cast<int64_t>(256.0 / 224.0 * static_cast<double>(edge));
  if (has_crop_pct(images, processor)) return share(0.9);
  return processor.ways == Ways::kConvNext ? share(224.0 / 256.0) : edge;
}

HfSide resized_to(const Json& images, const Processor& processor, const PreprocessConfig& p,
                  ResizeMode* mode) {
  const Json* size = json_find(images, "size");
  const bool keeps = processor.number_is_shorter_side && (size || processor.crops);
  *mode = keeps ? ResizeMode::kShorterSide : ResizeMode::kStretchCrop;
  if (!size) return {p.height * processor.size / 224, p.width * processor.size / 224};
  if (size->is_object() && json_find(*size, "longest_edge"))
    wrong_type(kImages, "size", *size, "height and width, or shortest_edge alone");
  if (const Json* edge = json_find(*size, "shortest_edge")) {
    const int64_t side = json_int(*edge, kImages, "size");
    *mode = ResizeMode::kShorterSide;
    return {side, side};
  }
  const HfSide side = read_side(*size, kImages, "size");
  if (size->is_number()) return side;
  const bool divided = has_crop_pct(images, processor), square = side.height == side.width;
  if (!divided || !square) *mode = ResizeMode::kStretchCrop;
  if (!divided || square) return side;
  return {resized_edge(images, processor, side.height), resized_edge(images, processor, side.width)};
}

// ConvNext's processor crops to the edge it is told, or stretches to it where that is 384 or more.
bool crop_to_edge(const Json& images, const HfSide& edge, PreprocessConfig* p) {
  refuse_beyond(images, "do_center_crop");
  VT_REQUIRE(p->mode == ResizeMode::kShorterSide, ErrorKind::kData,
             "%s: ConvNextImageProcessor needs a shortest_edge as its size", kImages);
  p->height = p->width = edge.height;
  if (edge.height < 384) return true;
  p->mode = ResizeMode::kStretchCrop;
  return false;
}

// Reads resize and crop into `p`, which comes with the model's own size as its crop.
void read_geometry(const Json& images, const Processor& processor, StatedConfig* stated,
                   PreprocessConfig* p) {
  HfSide resized = resized_to(images, processor, *p, &p->mode);
  const Json* crop = json_find(images, "crop_size");
  const bool to_edge = processor.ways == Ways::kConvNext;
  const bool crops =
      to_edge ? crop_to_edge(images, resized, p) : flag(images, "do_center_crop", processor.crops);
  if (p->mode == ResizeMode::kShorterSide) {
    VT_REQUIRE(resized.height == resized.width, ErrorKind::kData, "%s: %sImageProcessor needs one size",
               kImages, processor.name);
    resized.height = resized.width = resized_edge(images, processor, resized.height);
  }
  if (to_edge) {
    // the crop is the edge itself
  } else if (crops && crop) {
    const HfSide cropped = read_side(*crop, kImages, "crop_size");
    p->height = cropped.height;
    p->width = cropped.width;
  } else if (!crops && p->mode == ResizeMode::kStretchCrop) {
    p->height = resized.height;
    p->width = resized.width;
  }
  // Without a crop only square images come out square, and only the model's size is accepted.
  VT_REQUIRE(
      crops || p->mode != ResizeMode::kShorterSide || (resized.height == p->height && p->height == p->width),
      ErrorKind::kData,
      "%s: images are resized to a shortest edge of %lld and not cropped, the model takes %lld x %lld",
      kImages, static_cast<long long>(resized.height), static_cast<long long>(p->height),
      static_cast<long long>(p->width));
  set_resize_sides({resized.height, resized.width}, p);
  p->odd_margin = OddMargin::kDown;
  const bool resizes = flag(images, "do_resize", true);
  if (!resizes && crops) {
    p->mode = ResizeMode::kNone;
    p->resize = p->resize_longer = 0;
  }
  if (p->mode == ResizeMode::kStretchCrop && resized.height == p->height && resized.width == p->width) {
    p->mode = ResizeMode::kStretch;
    p->resize = p->resize_longer = 0;
    p->odd_margin = OddMargin::kHalfEven;
  }
  if (!resizes && !crops)  // transformers then takes images of the model's size alone
    stated->notes.push_back("preprocessor_config.json says not to resize; images are resized all the same");
}

// Converts the normalisation: Hugging Face's is (pixel * factor - mean) / std, ours (pixel / 255 - mean) /
// std.
void read_normalisation(const Json& images, Ways ways, size_t channels, PreprocessConfig* p) {
  if (const Json* mean = json_find(images, "image_mean"))
    p->mean = json_channels(*mean, kImages, "image_mean", channels);
  if (const Json* std = json_find(images, "image_std"))
    p->std = json_channels(*std, kImages, "image_std", channels);
  const std::vector<double> deviations = p->std;
  if (!flag(images, "do_normalize", true)) {
    std::fill(p->mean.begin(), p->mean.end(), 0.0);
    std::fill(p->std.begin(), p->std.end(), 1.0);
  }
  double scale = 1;  // 255 * factor
  if (!flag(images, "do_rescale", true))
    scale = 255;
  else if (const Json* factor = json_find(images, "rescale_factor"))
    scale = 255 * json_number(*factor, kImages, "rescale_factor");
  VT_REQUIRE(scale > 0, ErrorKind::kConfig, "%s: rescale_factor must be positive", kImages);
  const bool again = ways == Ways::kTwice && flag(images, "include_top", true);
  for (size_t c = 0; c < p->std.size(); ++c) p->std[c] *= again ? deviations[c] : 1;
  if (std::abs(scale - 1) < 1e-6) return;
  for (double& value : p->mean) value /= scale;
  for (double& value : p->std) value /= scale;
}

}  // namespace

HfSide read_side(const Json& value, const char* file, const char* key) {
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

PreprocessConfig read_preprocess(const Json* file, const char* usual, HfSide image, int64_t channels,
                                 StatedConfig* stated) {
  const Processor& processor = find_processor(file, usual, stated);
  const Json silent = Json::object();
  const Json& images = file ? *file : silent;
  // A side out of range is refused later, together with the model's size.
  const auto bounded = [](int64_t side) { return std::clamp<int64_t>(side, 1, 1 << 20); };
  PreprocessConfig p{.height = bounded(image.height),
                     .width = bounded(image.width),
                     .interpolation = processor.interpolation};
  const auto count = static_cast<size_t>(std::clamp<int64_t>(channels, 0, 4096));
  p.mean.assign(count, 0.5);
  p.std = p.mean;
  if (processor.colours == Colours::kClip) {
    p.mean = {0.48145466, 0.4578275, 0.40821073};
    p.std = {0.26862954, 0.26130258, 0.27577711};
  } else if (processor.colours == Colours::kImageNet) {
    p.mean = {0.485, 0.456, 0.406};
    p.std = {0.229, 0.224, 0.225};
  }
  refuse_beyond(images, processor.ways);
  read_geometry(images, processor, stated, &p);
  if (const Json* code = json_find(images, "resample")) p.interpolation = read_resample(*code);
  read_normalisation(images, processor.ways, count, &p);
  return p;
}

}  // namespace vitrail
