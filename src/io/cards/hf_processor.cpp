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

bool flag(const Json& object, const char* key, bool otherwise) {
  const Json* value = json_find(object, key);
  return value ? json_bool(*value, kImages, key) : otherwise;
}

// The defaults of transformers' image processors for keys that a config leaves out.
struct Processor {
  const char* name;  // the class, without "ImageProcessor"
  bool number_is_shorter_side, crops;
  int64_t size;  // the resized side, for a crop of 224
  Interpolation interpolation;
  bool clip_colours;
};
constexpr Processor kProcessors[] = {
    {"ViT", false, false, 224, Interpolation::kBilinear, false},
    {"DeiT", false, true, 256, Interpolation::kBicubic, false},
    {"CLIP", true, true, 224, Interpolation::kBicubic, true},
    {"Bit", true, true, 224, Interpolation::kBicubic, true},
    {"ViTHybrid", true, true, 224, Interpolation::kBicubic, true},
    {"Siglip", false, false, 224, Interpolation::kBicubic, false},
};

// Keys by which other processors do more than resize, crop and normalise.
constexpr const char* kBeyond[] = {"crop_pct", "rescale_offset", "do_flip_channel_order", "size_divisor",
                                   "do_color_quantize"};
// Keys that are required when nothing else determines what a processor does.
constexpr const char* kEssential[] = {"size", "resample", "do_center_crop", "image_mean", "image_std"};

const Processor& row_named(std::string_view name) {
  return *std::find_if(std::begin(kProcessors), std::end(kProcessors),
                       [&](const Processor& row) { return name == row.name; });
}

void refuse_beyond(const Json& images, std::span<const char* const> keys) {
  for (const char* key : keys) {
    const Json* value = json_find(images, key);
    if (!value || (value->is_boolean() && !value->get<bool>())) continue;
    throw Error(ErrorKind::kData,
                strf("%s: %s is %s, which is not understood and changes the result", kImages, key,
                     value->dump().c_str()),
                "leave it out if the model was trained without it");
  }
}

// Maps "DeiTImageProcessorFast" to "DeiT".
std::string processor_stem(const std::string& name) {
  for (const char* ending : {"ImageProcessor", "FeatureExtractor"})
    if (const size_t at = name.find(ending); at != std::string::npos) return name.substr(0, at);
  return name;
}

const Processor& find_processor(const Json* images, const char* usual_name, StatedConfig* stated) {
  const Processor& usual = row_named(usual_name);
  stated->images_origin = kImages;
  if (!images) {
    stated->images_origin = strf("the defaults of transformers' %sImageProcessor", usual.name);
    stated->images_warning = "there is no preprocessor_config.json";
    return usual;
  }
  constexpr const char* kPad[] = {"do_pad"};
  refuse_beyond(*images, kPad);
  for (const char* key : {"image_processor_type", "feature_extractor_type"})
    if (const Json* type = json_find(*images, key)) {
      const std::string name = json_string(*type, kImages, key);
      for (const Processor& row : kProcessors)
        if (processor_stem(name) == row.name) return row;
      refuse_beyond(*images, kBeyond);
      for (const char* essential : kEssential)
        VT_REQUIRE(json_find(*images, essential), ErrorKind::kData,
                   "%s: %s is not known, and what it does without %s neither", kImages, quoted(name).c_str(),
                   essential);
      stated->images_warning = quoted(name) + " is not known; done as its config says";
      return usual;
    }
  return usual;
}

HfSide resized_to(const Json& images, const Processor& processor, const PreprocessConfig& p,
                  ResizeMode* mode) {
  const Json* size = json_find(images, "size");
  *mode = processor.number_is_shorter_side ? ResizeMode::kShorterSide : ResizeMode::kStretchCrop;
  if (!size) return {p.height * processor.size / 224, p.width * processor.size / 224};
  if (size->is_object() && json_find(*size, "longest_edge"))
    wrong_type(kImages, "size", *size, "height and width, or shortest_edge alone");
  if (const Json* edge = json_find(*size, "shortest_edge")) {
    const int64_t side = json_int(*edge, kImages, "size");
    *mode = ResizeMode::kShorterSide;
    return {side, side};
  }
  if (!size->is_number()) *mode = ResizeMode::kStretchCrop;
  return read_side(*size, kImages, "size");
}

// Reads resize and crop into `p`, which comes with the model's own size as its crop.
void read_geometry(const Json& images, const Processor& processor, StatedConfig* stated,
                   PreprocessConfig* p) {
  const HfSide resized = resized_to(images, processor, *p, &p->mode);
  const Json* crop = json_find(images, "crop_size");
  const bool crops = flag(images, "do_center_crop", processor.crops);
  if (crops && crop) {
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
  if (p->mode == ResizeMode::kStretchCrop && resized.height == p->height && resized.width == p->width) {
    p->mode = ResizeMode::kStretch;
    p->resize = p->resize_longer = 0;
    p->odd_margin = OddMargin::kHalfEven;
  }
  if (!flag(images, "do_resize", true))
    stated->notes.push_back("preprocessor_config.json says not to resize; images are resized all the same");
}

// Converts the normalisation: Hugging Face's is (pixel * factor - mean) / std, ours (pixel / 255 - mean) /
// std.
void read_normalisation(const Json& images, PreprocessConfig* p) {
  if (const Json* mean = json_find(images, "image_mean"))
    p->mean = json_numbers(*mean, kImages, "image_mean");
  if (const Json* std = json_find(images, "image_std")) p->std = json_numbers(*std, kImages, "image_std");
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
  p.mean.assign(static_cast<size_t>(std::clamp<int64_t>(channels, 0, 4096)), 0.5);
  p.std = p.mean;
  if (processor.clip_colours) {
    p.mean = {0.48145466, 0.4578275, 0.40821073};
    p.std = {0.26862954, 0.26130258, 0.27577711};
  }
  read_geometry(images, processor, stated, &p);
  if (const Json* code = json_find(images, "resample")) p.interpolation = read_resample(*code);
  read_normalisation(images, &p);
  return p;
}

}  // namespace vitrail
