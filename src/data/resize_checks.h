// The rule every resampling checks first. Private to src/data.
#pragma once

#include "data/resize.h"

namespace vitrail {

// Sides are positive and below 2^28, the window lies inside, the image has 1, 3 or 4 channels and all of
// its pixels.
void check_resize(const Image& image, Size size, const Window& window);

}  // namespace vitrail
