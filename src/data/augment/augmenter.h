// From a decoded image to a training input: crop, flips, policy, colour jitter, grey, blur, normalisation,
// erasing, in this order, each a pure function of (seed, epoch, position, op). The loader's workers share
// one. Knows no dataset and no labels.
#pragma once

#include <span>
#include <vector>

#include "data/augment/augment_config.h"
#include "data/augment/policy.h"
#include "data/preprocess.h"
#include "image/image_recipe.h"
#include "image/preprocess_config.h"

namespace vitrail {

class Augmenter {
 public:
  // `preprocess` gives size, mean, std, interpolation and, where nothing is cropped at random, the crop.
  Augmenter(const AugmentConfig& config, const PreprocessConfig& preprocess, int64_t channels, uint64_t seed);

  // Returns the least_side for Dataset::load; `position` is the sample's place in the epoch.
  int64_t least_side(int64_t epoch, int64_t position) const;

  // Returns 8-bit pixels at the model's input size. The image must have the model's channels already.
  Image vary(Image image, int64_t epoch, int64_t position) const;

  // Does the same, normalised and erased, into planes.
  void fill(Image image, int64_t epoch, int64_t position, std::span<float> target) const;

  // Does the same in two parts: 8-bit pixels at the model's input size, and in `recipe` the remaining steps.
  // Erased boxes must be few and of EraseMode::kConst.
  Image prepare(Image image, int64_t epoch, int64_t position, ImageRecipe& recipe) const;

  // only_moves() says whether images of the model's size need nothing but a recipe; describe() fills one in.
  bool only_moves() const;
  void describe(int64_t epoch, int64_t position, ImageRecipe& recipe) const;

 private:
  bool is_drawn(double probability, int64_t epoch, int64_t position, const char* op) const;
  bool keeps_target_size() const;
  void describe_erased(int64_t epoch, int64_t position, ImageRecipe& recipe) const;
  Draw draw(int64_t epoch, int64_t position, const char* op) const;
  Interpolation crop_interpolation(Draw& draw) const;
  Image cropped(Image image, int64_t epoch, int64_t position) const;

  AugmentConfig config_;
  PreprocessConfig preprocess_;
  uint64_t seed_;
  Policy policy_;
  PolicyLook look_;
  std::vector<LevelTable> levels_;
};

// Converts grey to RGB or RGB to luma, where the model's channels differ from the image's.
Image with_channels(Image image, int64_t channels);

}  // namespace vitrail
