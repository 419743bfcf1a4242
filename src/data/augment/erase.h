// Random erasing of normalised images by timm's rule.
#pragma once

#include <functional>
#include <span>

#include "data/augment/augment_config.h"
#include "data/augment/draw.h"
#include "data/resize.h"

namespace vitrail {

// Calls `erase` with every box as it is drawn; `erase` may draw too before the next box is drawn.
void draw_erased(Size size, const AugmentConfig& config, Draw& draw,
                 const std::function<void(const Window&)>& erase);

// Erases boxes of `picture`, planes of `size`. Zero is the mean colour of normalised images.
void random_erase(std::span<float> picture, Size size, const AugmentConfig& config, Draw& draw);

}  // namespace vitrail
