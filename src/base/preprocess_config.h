// How a picture becomes the input of a model, as data: filled from a model's config by io, carried out by
// data, shown by every command that reads pictures. Knows no files and no pixels.
#pragma once

#include <cstdint>
#include <vector>

#include "base/enum_names.h"

namespace vitrail {

enum class ResizeMode { kShorterSide, kStretch };
enum class Interpolation { kNearest, kBilinear, kBicubic, kLanczos, kBox };
// Whose resampling: Pillow's (antialiased, 8-bit fixed point), TensorFlow's without antialias (kept in
// float), TensorFlow's `area` (truncated to 8 bits).
enum class Resampler { kPillow, kTf, kTfArea };

template <> struct EnumNames<ResizeMode> { static constexpr const char* names[] = {"shorter_side", "stretch"}; };
template <> struct EnumNames<Interpolation> {
  static constexpr const char* names[] = {"nearest", "bilinear", "bicubic", "lanczos", "box"};
};
template <> struct EnumNames<Resampler> { static constexpr const char* names[] = {"pillow", "tf", "tf_area"}; };

struct PreprocessConfig {
  int64_t height = 224, width = 224;  // what the model takes: the crop
  ResizeMode mode = ResizeMode::kShorterSide;
  // Shorter side before the centre crop (kShorterSide only); 0 means the crop's shorter side itself.
  int64_t resize = 248;
  // Its counterpart for the longer side of a crop that is not square; 0: in proportion, rounded down.
  int64_t resize_longer = 0;
  Interpolation interpolation = Interpolation::kBicubic;
  Resampler resampler = Resampler::kPillow;
  // x = (pixel/255 - mean) / std, per channel.
  std::vector<double> mean = {0.5, 0.5, 0.5};
  std::vector<double> std = {0.5, 0.5, 0.5};

  bool operator==(const PreprocessConfig&) const = default;
};

template <typename Config, typename Visitor>
void visit_preprocess_fields(Config& c, Visitor&& v) {
  v("height", c.height, "rows of the crop");
  v("width", c.width, "columns of the crop");
  v("mode", c.mode, "shorter_side (then centre crop) or stretch");
  v("resize", c.resize, "shorter side before the crop");
  v("resize_longer", c.resize_longer, "longer side before a crop that is not square; 0: in proportion");
  v("interpolation", c.interpolation, "nearest, bilinear, bicubic, lanczos or box");
  v("resampler", c.resampler, "pillow, tf or tf_area");
  v("mean", c.mean, "subtracted per channel, of values in 0..1");
  v("std", c.std, "divided by per channel");
}

}  // namespace vitrail
