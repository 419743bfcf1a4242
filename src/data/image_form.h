// Chooses the form in which training images reach a step: floats from the CPU, or 8-bit pixels from which the
// device makes them, one batch at a time or stored there as a whole. Results do not depend on the choice.
#pragma once

#include <functional>
#include <string>

#include "data/sample_source.h"

namespace vitrail {

// Says what the device and the rest of the run support.
struct ImageLimits {
  bool own_memory = false;   // a GPU's: by default images are made there
  size_t stored_bytes = 0;   // a dataset up to this size is stored there by default
  std::string needs_floats;  // the reader of images on the CPU; empty: none
};

struct ImageChoice {
  ImageForm form = ImageForm::kFloats;
  std::string note;  // what was decided and why; empty where there was nothing to decide
};

ImageChoice choose_images(const LoaderSettings& settings, const Dataset& dataset, const ImageLimits& limits);

// Receives the pixels for ImageForm::kStored: every sample's, in the model's channels, some samples at a
// time. Throws Error(kData) where a sample cannot be read.
using TakePixels = std::function<void(size_t offset, std::span<const uint8_t> pixels)>;
void read_stored_pixels(const LoaderSettings& settings, const Dataset& dataset, const TakePixels& take);

// Returns the normalised value of each level, [C 256].
std::vector<float> image_levels(const LoaderSettings& settings);

}  // namespace vitrail
