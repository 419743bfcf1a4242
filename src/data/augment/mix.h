// Mixup and cutmix of a group of normalised images, or of their recipes, with their dense targets, by
// timm's rules for a batch: sample i is mixed with sample n - 1 - i, all with one lambda. Knows no files.
#pragma once

#include <span>

#include "base/picture_recipe.h"
#include "data/augment/augment_config.h"
#include "data/augment/draw.h"
#include "data/resize.h"

namespace vitrail {

struct Mix {
  double lambda = 1;  // share of the sample itself
  bool cut = false;   // cutmix: the box comes from the partner, and lambda is what is left of the area
  Window box;
};

Mix draw_mix(const AugmentConfig& config, Size size, Draw& draw);

// The group's part of a batch, of images or of recipes; rows of `pictures` and `targets` belong to one
// sample each.
struct MixGroup {
  std::span<float> pictures, targets, weights;
  Size size;
  std::span<PictureRecipe> recipes = {};
  int64_t first = 0;  // row of the batch; recipes name partners by it
};

// Pairs of which one weighs nothing (a sample that could not be read) stay as they are. Weights are mixed
// as targets are.
void mix_samples(const Mix& mix, const MixGroup& group);

}  // namespace vitrail
