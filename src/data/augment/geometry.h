// Geometric augmentations: flips, cropping, padding, and affine maps bit-equal to Pillow's Image.transform
// and Image.rotate. Draws nothing at random.
#pragma once

#include <array>
#include <cstdint>

#include "data/resize.h"
#include "image/image.h"
#include "image/preprocess_config.h"

namespace vitrail {

void flip_horizontal(Image& image);
void flip_vertical(Image& image);

// Crops a window, which may reach outside the image by less than a side: there, black or (`mirror`) its
// reflection about the border pixel.
Image crop_window(const Image& image, const Window& window, bool mirror = false);

// The interpolation of an affine map, and the colour outside the image (its first `channels` values).
struct Sampling {
  Interpolation interpolation = Interpolation::kBicubic;  // nearest, bilinear or bicubic
  std::array<uint8_t, 3> fill = {128, 128, 128};
};

// Output pixel (x, y) shows the position (a x + b y + c, d x + e y + f) of the image, `map` = {a, ..., f}.
void affine(Image& image, const std::array<double, 6>& map, const Sampling& sampling);

// Rotates counter-clockwise about the centre.
void rotate(Image& image, double degrees, const Sampling& sampling);

}  // namespace vitrail
