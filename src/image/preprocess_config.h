// Describes how an image becomes the input of a model, as data: resize, crop, normalisation. The fields come
// from the model's config. Knows no files and no pixels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/enum_names.h"

namespace vitrail {

// Says how an image becomes the crop; data/preprocess.h has the rule of each. From kShorterMost on they are
// those of transformers, the last six of single processors, which take `resize` and `resize_longer` as they
// need them.
enum class ResizeMode {
  kShorterSide,
  kStretch,
  kStretchCrop,
  kLongerSide,
  kNone,
  kShorterMost,
  kWithin,
  kCropStretch,
  kShorterDown,
  kShorterUp,
  kSquare,
  kCorner,
  kThumbnail
};
enum class Interpolation { kNearest, kBilinear, kBicubic, kLanczos, kBox, kHamming };
// Says which library's resampling is reproduced: Pillow's (antialiased, 8-bit fixed point), TensorFlow's
// without antialias (kept in float), TensorFlow's `area` (truncated to 8 bits).
enum class Resampler { kPillow, kTf, kTfArea };
// Says where a centre crop starts when an odd number of pixels is left over: n/2 rounded half to even as
// torchvision does, or down as transformers does, which rounds up where an image smaller than the crop
// starts. TensorFlow's resamplers always round down.
enum class OddMargin { kHalfEven, kDown };

template <>
struct EnumNames<ResizeMode> {
  static constexpr const char* names[] = {
      "shorter_side", "stretch",      "stretch_crop", "longer_side", "none",   "shorter_most", "within",
      "crop_stretch", "shorter_down", "shorter_up",   "square",      "corner", "thumbnail"};
};
template <>
struct EnumNames<Interpolation> {
  static constexpr const char* names[] = {"nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"};
};
template <>
struct EnumNames<Resampler> {
  static constexpr const char* names[] = {"pillow", "tf", "tf_area"};
};
template <>
struct EnumNames<OddMargin> {
  static constexpr const char* names[] = {"half_even", "down"};
};

struct PreprocessConfig {
  int64_t height = 224, width = 224;  // the model's input size: the crop, and what is padded
  ResizeMode mode = ResizeMode::kShorterSide;
  // The size before the centre crop, along the crop's shorter side (a square crop's rows); 0 means the crop's
  // own. kShorterSide keeps the image's shape and covers these sides, kLongerSide keeps it and stays within
  // them, kStretchCrop stretches to them; kStretch and kNone, which crops the image as it is, ignore them.
  int64_t resize = 248;
  // Its counterpart along the longer side; 0: in proportion, rounded down.
  int64_t resize_longer = 0;
  // The crop ratio from which the two were computed, see side_before_crop(); 0 when they were published as
  // such. It decides how they change with another crop size.
  double crop_pct = 0;
  OddMargin odd_margin = OddMargin::kHalfEven;
  Interpolation interpolation = Interpolation::kBicubic;
  Resampler resampler = Resampler::kPillow;
  // Rows at the bottom and columns at the right of the input that no image reaches: they hold the mean.
  int64_t pad_rows = 0, pad_columns = 0;
  // The input is x = (pixel/255 - mean) / std, per channel.
  std::vector<double> mean = {0.5, 0.5, 0.5};
  std::vector<double> std = {0.5, 0.5, 0.5};

  bool operator==(const PreprocessConfig&) const = default;
};

// timm's rule for the resized side of which the centre crop keeps the share `crop_pct`.
inline int64_t side_before_crop(int64_t side, double crop_pct) {
  return static_cast<int64_t>(static_cast<double>(side) / crop_pct);
}

struct ResizeSides {
  int64_t height = 0, width = 0;
};

// Returns the part of the input that images fill.
inline ResizeSides crop_sides(const PreprocessConfig& c) {
  return {c.height - c.pad_rows, c.width - c.pad_columns};
}

// Returns `resize` and `resize_longer` as height and width, in the orientation of the crop.
inline ResizeSides resize_sides(const PreprocessConfig& c) {
  const auto [height, width] = crop_sides(c);
  const int64_t shorter = std::min(height, width), longer = std::max(height, width);
  const int64_t resize = c.resize ? c.resize : shorter;
  const int64_t other = c.resize_longer ? c.resize_longer : longer * resize / shorter;
  return height <= width ? ResizeSides{resize, other} : ResizeSides{other, resize};
}

inline void set_resize_sides(ResizeSides sides, PreprocessConfig* c) {
  const auto [height, width] = crop_sides(*c);
  const bool upright = height > width;
  c->resize = upright ? sides.width : sides.height;
  c->resize_longer = upright ? sides.height : sides.width;
  if (height == width && c->resize_longer == c->resize) c->resize_longer = 0;
}

template <typename Config, typename Visitor>
void visit_preprocess_fields(Config& c, Visitor&& v) {
  v("height", c.height, "rows of the crop");
  v("width", c.width, "columns of the crop");
  v("mode", c.mode,
    "shorter_side (then centre crop), stretch, stretch_crop (to resize, then centre crop), longer_side "
    "(then centre crop, what is missing filled with the mean), none (centre crop alone), or as transformers "
    "does: shorter_most, within, crop_stretch, shorter_down, shorter_up, square, corner or thumbnail");
  v("resize", c.resize, "side before the crop, along its shorter side");
  v("resize_longer", c.resize_longer, "the other side before the crop; 0: in proportion");
  v("crop_pct", c.crop_pct, "crop / resize as published, for other crops; 0: as the sides say");
  v("odd_margin", c.odd_margin, "start of a crop with an odd margin: half_even or down");
  v("pad_rows", c.pad_rows, "rows at the bottom that hold the mean");
  v("pad_columns", c.pad_columns, "columns at the right that hold the mean");
  v("interpolation", c.interpolation, "nearest, bilinear, bicubic, lanczos, box or hamming");
  v("resampler", c.resampler, "pillow, tf or tf_area");
  v("mean", c.mean, "subtracted per channel, of values in 0..1");
  v("std", c.std, "divided by per channel");
}

}  // namespace vitrail
