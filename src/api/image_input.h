// Images of a caller made into the inputs of a model: checked, decoded, preprocessed. It must trust nothing
// that a view says about itself.
#pragma once

#include <span>
#include <vector>

#include "image/image.h"
#include "io/model_files.h"
#include "vitrail/image.h"

namespace vitrail {

// The input of a model [C Y X] from one image; Error(kUsage) or Error(kData) for what cannot be one.
void fill_input(const ImageView& image, const ModelCard& card, bool upright, std::span<float> target);

// Several, one after the other, by `threads` threads; an error names the image by its number.
std::vector<float> inputs_of(std::span<const ImageView> images, const ModelCard& card, bool upright,
                             int threads);

// Floats of one image.
size_t input_elems(const VitConfig& config);

}  // namespace vitrail
