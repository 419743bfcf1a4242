// Words on an image: a built-in 5 x 7 font of digits and lowercase letters; knows
// pixels only.
#pragma once

#include <string_view>

#include "image/image.h"

namespace vitrail {

inline constexpr int64_t kTinyHeight = 7;  // pixels at scale 1, and two below the line

// Draws in grey `ink`, each dot `scale` pixels wide, clipped at the image's edges; what the font lacks is a
// gap.
void draw_tiny_text(std::string_view text, int64_t top, int64_t left, int64_t scale, uint8_t ink,
                    Image& image);

}  // namespace vitrail
