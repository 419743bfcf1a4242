#include "io/cards/hf_processor.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/cards/hf_images.h"
#include "io/config_json.h"

namespace vitrail::hf_rows {

namespace {

Interpolation read_resample(const Json& value) {
  constexpr Interpolation kCodes[] = {Interpolation::kNearest,  Interpolation::kLanczos,
                                      Interpolation::kBilinear, Interpolation::kBicubic,
                                      Interpolation::kBox,      Interpolation::kHamming};
  const int64_t code = json_int(value, kImages, "resample");
  if (code < 0 || code > 5)
    wrong_type(kImages, "resample", value, "0 nearest, 1 lanczos, 2 bilinear, 3 bicubic, 4 box or 5 hamming");
  return kCodes[code];
}

const Row* row_named(std::string_view name) {
  const auto at =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return name == row.name; });
  return at == std::end(kRows) ? nullptr : at;
}

// Maps "DeiTImageProcessorFast" to "DeiT".
std::string processor_stem(const std::string& name) {
  for (const char* ending : {"ImageProcessor", "FeatureExtractor"})
    if (const size_t at = name.find(ending); at != std::string::npos) return name.substr(0, at);
  return name;
}

// Every other processor of transformers has ways of its own, which its config does not tell.
const Row& find_processor(const Json* images, const char* usual_name, StatedConfig* stated) {
  const Row& usual = *row_named(usual_name);
  stated->images_origin = kImages;
  if (!images) {
    stated->images_origin = strf("the defaults of transformers' %sImageProcessor", usual.name);
    stated->images_warning = "there is no preprocessor_config.json";
    return usual;
  }
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const Json* type = json_find(*images, key);
    if (!type) continue;
    const std::string name = json_string(*type, kImages, key);
    if (const Row* row = row_named(processor_stem(name))) {
      if (row != &usual) stated->images_origin += strf(" of %sImageProcessor", row->name);
      return *row;
    }
    throw Error(ErrorKind::kData, strf("%s: what %s does is not known", kImages, quoted(name).c_str()),
                "ViTImageProcessor as its image_processor_type, if images are only resized, cropped and "
                "normalised as the file says");
  }
  return usual;
}

void refuse_what_is_beyond(const Json& images, const Row& row) {
  for (const Beyond& beyond : kBeyond)
    if (std::string_view(beyond.processor) == row.name &&
        flag(images, beyond.key, beyond.usual) != beyond.wanted)
      refuse_beyond(row, images, beyond.key);
}

void set_usual_colours(const Palette& palette, size_t channels, PreprocessConfig* p) {
  p->mean.assign(std::begin(palette.mean), std::end(palette.mean));
  p->std.assign(std::begin(palette.std), std::end(palette.std));
  if (palette.mean[0] != palette.mean[1]) return;
  p->mean.resize(channels, palette.mean[0]);
  p->std.resize(channels, palette.std[0]);
}

// Returns 255 times the factor of pixels.
double pixel_scale(const Json& images, const Palette& palette) {
  if (!palette.may_scale || !flag(images, "do_rescale", true)) return 255;
  const Json* factor = json_find(images, "rescale_factor");
  const double scale = 255 * (factor ? json_number(*factor, kImages, "rescale_factor") : palette.factor);
  VT_REQUIRE(scale > 0, ErrorKind::kConfig, "%s: rescale_factor must be positive", kImages);
  return scale;
}

// Converts the normalisation: Hugging Face's is (pixel * factor - mean) / std, ours (pixel / 255 - mean) /
// std.
void read_normalisation(const Json& images, const Row& row, size_t channels, PreprocessConfig* p) {
  const Palette& palette = kPalettes[static_cast<size_t>(row.colours)];
  set_usual_colours(palette, channels, p);
  if (const Json* mean = json_find(images, "image_mean"))
    p->mean = json_channels(*mean, kImages, "image_mean", channels);
  if (const Json* std = json_find(images, "image_std"))
    p->std = json_channels(*std, kImages, "image_std", channels);
  const std::vector<double> deviations = p->std;
  if (!palette.may_normalise || !flag(images, "do_normalize", palette.normalises)) {
    std::fill(p->mean.begin(), p->mean.end(), 0.0);
    std::fill(p->std.begin(), p->std.end(), 1.0);
  }
  const bool offset =
      row.ways == Ways::kTwice && flag(images, "rescale_offset", false) && flag(images, "do_rescale", true);
  for (double& value : p->mean) value += offset ? 1 : 0;
  const bool again = row.ways == Ways::kTwice && flag(images, "include_top", true);
  for (size_t c = 0; c < p->std.size(); ++c) p->std[c] *= again ? deviations[c] : 1;
  const double scale = pixel_scale(images, palette);
  if (std::abs(scale - 1) < 1e-6) return;
  for (double& value : p->mean) value /= scale;
  for (double& value : p->std) value /= scale;
}

}  // namespace

bool flag(const Json& images, const char* key, bool otherwise) {
  const auto at = images.find(key);
  if (at == images.end()) return otherwise;
  if (at->is_number()) return json_number(*at, kImages, key) != 0;
  return !at->is_null() && json_bool(*at, kImages, key);
}

void refuse_beyond(const Row& row, const Json& images, const char* key) {
  const auto at = images.find(key);
  const std::string said = at == images.end() ? "left out" : at->dump();
  throw Error(ErrorKind::kData,
              strf("%s: %s is %s, which is not understood and changes the result of %sImageProcessor",
                   kImages, key, said.c_str(), row.name),
              "leave it out if the model was trained without it");
}

}  // namespace vitrail::hf_rows

namespace vitrail {

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
  using namespace hf_rows;
  const Row& row = find_processor(file, usual, stated);
  const Json silent = Json::object();
  const Json& images = file ? *file : silent;
  // A side out of range is refused later, together with the model's size.
  const auto bounded = [](int64_t side) { return std::clamp<int64_t>(side, 1, 1 << 20); };
  PreprocessConfig p{
      .height = bounded(image.height), .width = bounded(image.width), .interpolation = row.interpolation};
  refuse_what_is_beyond(images, row);
  if (const Json* code = json_find(images, "resample")) p.interpolation = read_resample(*code);
  const auto count = static_cast<size_t>(std::clamp<int64_t>(channels, 0, 4096));
  read_normalisation(images, row, count, &p);
  read_geometry(images, row, stated, &p);
  stated->swaps_channels =
      has(row, kSwaps) && (!has(row, kMaySwap) || flag(images, "do_flip_channel_order", true));
  return p;
}

}  // namespace vitrail
