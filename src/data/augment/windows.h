// Augmentations by windows: where a training crop lies, and which boxes are erased. Draws windows; others
// carry them out.
#pragma once

#include <functional>
#include <span>

#include "data/augment/augment_config.h"
#include "data/augment/draw.h"
#include "data/resize.h"
#include "image/image_recipe.h"

namespace vitrail {

// These choose where a training crop lies: the random resized crop of torchvision and timm, and the random
// crop of a padded image. They make windows only; geometry and resize carry them out.

// Makes ten attempts at an area and a shape that fit; then it takes the centre, as near to the allowed shapes
// as possible.
Window resized_crop(Size image, const AugmentConfig& config, Draw& draw);

// Returns how small the shorter side of an image may be so that resized_crop (which draws the same from a
// fresh `draw`) never has to upscale where a larger image would have shown more detail.
int64_t resized_crop_least_side(Size target, const AugmentConfig& config, Draw draw);

// Returns a window of the size `target`, which the image covers, in the image padded by `pad` on every side;
// in the image's own coordinates.
Window padded_crop(Size image, Size target, int64_t pad, Draw& draw);

// Converts a window within an image to the form of recipes.
ImageBox box_of(const Window& window);

// Random erasing of normalised images by timm's rule.

// Hands on every box that is erased, as it is drawn; `erase` may draw too before the next one is.
void draw_erased(Size size, const AugmentConfig& config, Draw& draw,
                 const std::function<void(const Window&)>& erase);

// `image`: planes of `size`. Zero is the mean colour of normalised images.
void random_erase(std::span<float> image, Size size, const AugmentConfig& config, Draw& draw);

}  // namespace vitrail
