// The position of a training crop: the random resized crop of torchvision and timm, and the random crop of a
// padded image. Computes windows only; knows no pixels.
#pragma once

#include "base/picture_recipe.h"
#include "data/augment/augment_config.h"
#include "data/augment/draw.h"
#include "data/resize.h"

namespace vitrail {

// Makes ten attempts at an area and a shape that fit; then returns the centre, as near to the allowed shapes
// as possible.
Window resized_crop(Size picture, const AugmentConfig& config, Draw& draw);

// Returns how small the shorter side of an image may be so that resized_crop (which draws the same from a
// fresh `draw`) never has to upscale where a larger image would have shown more detail.
int64_t resized_crop_least_side(Size target, const AugmentConfig& config, Draw draw);

// Returns a window of the size `target`, which the image covers, in the image padded by `pad` on every side;
// in the image's own coordinates.
Window padded_crop(Size picture, Size target, int64_t pad, Draw& draw);

// Converts a window within an image to the form of recipes.
PictureBox box_of(const Window& window);

}  // namespace vitrail
