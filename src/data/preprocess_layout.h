// Where a resized image lies in a model's input, by the rule of each mode in data/preprocess.h, and what some
// of them do before. Private to preprocess.cpp; knows no normalisation.
#pragma once

#include <optional>

#include "data/resize.h"

namespace vitrail {

// The overlap of one side of the resized image with the crop: the crop's start in the image or, when the
// image is smaller, the image's start in the crop.
struct CropSpan {
  int64_t from = 0, to = 0, length = 0;
};

struct ImageLayout {
  Size size;
  CropSpan rows, columns;
  Window window() const { return {rows.from, columns.from, rows.length, columns.length}; }
};

// Returns how an image of this size is resized, and its part in the crop.
ImageLayout lay_out(const Image& image, const PreprocessConfig& config);

// Returns the image that is laid out in the place of this one: its centre, or the first of two resizes;
// nothing where the image itself is.
std::optional<Image> first_step(const Image& image, const PreprocessConfig& config);

// Returns whether TensorFlow's resampling is reproduced.
inline bool is_tf(const PreprocessConfig& config) {
  return config.resampler != Resampler::kPillow;
}

}  // namespace vitrail
