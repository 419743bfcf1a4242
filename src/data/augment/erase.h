// Random erasing of normalised pictures by timm's rule. Used by Augmenter.
#pragma once

#include <span>

#include "data/augment/augment_config.h"
#include "data/augment/draw.h"
#include "data/resize.h"

namespace vitrail {

// `picture`: planes of `size`. Zero is the mean colour of normalised pictures.
void random_erase(std::span<float> picture, Size size, const AugmentConfig& config, Draw& draw);

}  // namespace vitrail
