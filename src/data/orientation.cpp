#include "data/orientation.h"

#include <algorithm>
#include <utility>

namespace vitrail {

// Orientations 2 to 4 mirror and rotate by 180 degrees; from 5 on rows and columns are exchanged first.
Image turned_upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool exchange = orientation >= 5;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Image out = Image::blank(exchange ? image.width : image.height, exchange ? image.height : image.width,
                           image.channels);
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t seen_y = from_below ? out.height - 1 - y : y, seen_x = from_right ? out.width - 1 - x : x;
      const uint8_t* from =
          image.row(exchange ? seen_x : seen_y) + (exchange ? seen_y : seen_x) * image.channels;
      std::copy_n(from, image.channels, out.row(y) + x * image.channels);
    }
  return out;
}

}  // namespace vitrail
