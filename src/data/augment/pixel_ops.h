// Augmentations of single pixels and their neighbourhoods, bit-equal to Pillow.
#pragma once

#include <cstdint>

#include "image/image.h"

namespace vitrail {

// Augmentations that map every level by a table, the tables as Pillow's ImageOps makes them: bit-equal to
// Pillow. Each channel of the image is mapped alike, or by its own histogram.

// Stretches each channel's levels to 0..255.
void auto_contrast(Image& image);

// Makes each channel's histogram flat.
void equalize(Image& image);

void invert(Image& image);

// Keeps the `bits` highest bits; 8 or more keeps all, 0 or less none.
void posterize(Image& image, int64_t bits);

// Inverts levels from `threshold` on.
void solarize(Image& image, double threshold);

// Adds to levels below 128.
void solarize_add(Image& image, int64_t amount);

// Gaussian blur as Pillow's ImageFilter.GaussianBlur makes it, bit-equal: three extended box filters along
// each side, in 24-bit fixed point, 8 bits between the passes.
void gaussian_blur(Image& image, double sigma);

}  // namespace vitrail
