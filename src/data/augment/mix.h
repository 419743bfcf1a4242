// Mixup and cutmix of a group of normalised images, or of their recipes, with their dense targets, by timm's
// rules for a batch: sample i is mixed with sample n - 1 - i, all with one lambda. Knows no files.
#pragma once

#include <span>

#include "data/augment/augment_config.h"
#include "data/augment/draw.h"
#include "data/resize.h"
#include "image/image_recipe.h"

namespace vitrail {

struct Mix {
  double lambda = 1;  // weight of the sample itself
  bool cut = false;   // cutmix: the box comes from the partner, and lambda is the rest of the area
  Window box;
};

Mix draw_mix(const AugmentConfig& config, Size size, Draw& draw);

// The group's part of a batch, as images or as recipes; rows of `images` and `targets` belong to one sample
// each.
struct MixGroup {
  std::span<float> images, targets, weights;
  Size size;
  std::span<ImageRecipe> recipes = {};
  int64_t first = 0;  // row of the batch; recipes name partners by it
};

// Mixes a group. Pairs of which one has weight 0 (a sample that could not be read) stay unmixed. Weights are
// mixed like targets.
void mix_samples(const Mix& mix, const MixGroup& group);

}  // namespace vitrail
