// Turns an image upright by its EXIF orientation. Decoding itself leaves pixels as stored.
#pragma once

#include "data/image.h"

namespace vitrail {

// `orientation` is that of DecodeReport: 1 to 8; anything else leaves the image unchanged.
Image turned_upright(Image image, int orientation);

}  // namespace vitrail
