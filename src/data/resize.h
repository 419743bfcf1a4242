// Resampling of 8-bit images, bit-equal to Pillow's Image.resize, and the two TensorFlow resamplings that
// published ViTs were evaluated with. Knows no model and no normalisation.
#pragma once

#include <cstdint>
#include <vector>

#include "image/image.h"
#include "image/preprocess_config.h"

namespace vitrail {

// A part of the resized image: only that part is computed, with the values it has within the whole.
struct Window {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

struct Size {
  int64_t height = 0, width = 0;
  bool operator==(const Size&) const = default;
};

// Returns the whole number nearest to a side or a place, of two the even one, as Python's round().
int64_t round_half_even(double x);

struct FloatImage {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<float> pixels;  // rows, interleaved, in 0..255
};

// The precondition of every resampling, for src/data alone: requires that sides are positive and below 2^28,
// that the window lies inside, and that the image has 1, 3 or 4 channels and all of its pixels.
void check_resize(const Image& image, Size size, const Window& window);

// Resizes as Pillow does: antialiased, weights in 22-bit fixed point, 8 bits between the horizontal and the
// vertical pass.
Image resize(const Image& image, Size size, Interpolation interpolation);
Image resize(const Image& image, Size size, const Window& window, Interpolation interpolation);

// Computes tf.image.resize(method="bilinear", antialias=False): half-pixel centres, no antialias, stays in
// float.
FloatImage resize_tf_bilinear(const Image& image, Size size, const Window& window);

// Computes tf.image.resize(method="area") and a cast to uint8, which truncates.
Image resize_tf_area(const Image& image, Size size, const Window& window);

}  // namespace vitrail
