// Where a training crop lies: the random resized crop of torchvision and timm, and the random crop of a
// padded image. Windows only; geometry and resize carry them out.
#pragma once

#include "base/picture_recipe.h"
#include "data/augment/augment_config.h"
#include "data/augment/draw.h"
#include "data/resize.h"

namespace vitrail {

// Ten attempts at an area and a shape that fit; then the centre, as near to the allowed shapes as possible.
Window resized_crop(Size picture, const AugmentConfig& config, Draw& draw);

// How small the shorter side of an image may be so that resized_crop (which draws the same from a fresh
// `draw`) never has to enlarge what a bigger one would have shown in more detail.
int64_t resized_crop_least_side(Size target, const AugmentConfig& config, Draw draw);

// A window of the size `target`, which the image covers, in the image padded by `pad` on every side; in
// the image's own coordinates.
Window padded_crop(Size picture, Size target, int64_t pad, Draw& draw);

// A window within an image, as recipes hold it.
PictureBox box_of(const Window& window);

}  // namespace vitrail
