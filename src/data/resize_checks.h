// The precondition of every resampling. Private to src/data.
#pragma once

#include "data/resize.h"

namespace vitrail {

// Requires that sides are positive and below 2^28, that the window lies inside, and that the image has 1, 3
// or 4 channels and all of its pixels.
void check_resize(const Image& image, Size size, const Window& window);

}  // namespace vitrail
