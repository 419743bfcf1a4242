// Augmentations that map every level through a table, bit-equal to Pillow's ImageOps. All channels of the
// image share the table, or each has one from its own histogram.
#pragma once

#include <cstdint>

#include "data/image.h"

namespace vitrail {

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

}  // namespace vitrail
