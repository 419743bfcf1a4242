// A caller's images made into the inputs of a model: checked, decoded, preprocessed. Trusts no size or stride
// that a view states.
#pragma once

#include <span>
#include <vector>

#include "image/image.h"
#include "io/model_files.h"
#include "vitrail/image.h"

namespace vitrail {

// Writes the input of a model [C Y X] for one image; throws Error(kUsage) or Error(kData) for an invalid one.
void fill_input(const ImageView& view, const ModelCard& card, bool upright, std::span<float> target);

// Returns the inputs of several images, one after the other, made by `threads` threads; an error names the
// image by its number.
std::vector<float> inputs_of(std::span<const ImageView> images, const ModelCard& card, bool upright,
                             int threads);

// Returns the number of floats of one image.
size_t input_elems(const VitConfig& config);

}  // namespace vitrail
