// Turning an image as its EXIF orientation says it is to be seen. Decoding itself leaves pixels as stored.
#pragma once

#include "data/image.h"

namespace vitrail {

// `orientation` as DecodeReport has it: 1 to 8, anything else leaves the image as it is.
Image turned_upright(Image image, int orientation);

}  // namespace vitrail
