// Gaussian blur as Pillow's ImageFilter.GaussianBlur makes it, bit-equal: three extended box filters along
// each side, in 24-bit fixed point, 8 bits between the passes.
#pragma once

#include "data/image.h"

namespace vitrail {

void gaussian_blur(Image& image, double sigma);

}  // namespace vitrail
