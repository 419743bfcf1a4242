// In which form training images reach a step, decided in one place: floats from the CPU, or 8-bit pixels
// from which the device makes them, one batch at a time or kept there whole. Results do not depend on the
// choice.
#pragma once

#include <functional>
#include <string>

#include "data/sample_source.h"

namespace vitrail {

// What the device and the rest of the run allow.
struct PictureLimits {
  bool own_memory = false;   // a GPU's: the usual place to make images
  size_t stored_bytes = 0;   // a dataset up to this size is kept there without being asked to
  std::string needs_floats;  // who reads images on the CPU; empty: nobody
};

struct PictureChoice {
  PictureForm form = PictureForm::kFloats;
  std::string note;  // what was decided and why; empty where there was nothing to decide
};

PictureChoice choose_pictures(const LoaderSettings& settings, const Dataset& dataset,
                              const PictureLimits& limits);

// Of PictureForm::kStored: every sample's pixels in the model's channels, a run of them at a time. Throws
// Error(kData) where a sample cannot be read.
using TakePixels = std::function<void(size_t offset, std::span<const uint8_t> pixels)>;
void read_stored_pixels(const LoaderSettings& settings, const Dataset& dataset, const TakePixels& take);

// [C 256]: what normalisation makes of each level.
std::vector<float> picture_levels(const LoaderSettings& settings);

}  // namespace vitrail
