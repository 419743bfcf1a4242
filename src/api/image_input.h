// A caller's images made into the inputs of a model: checked, decoded, preprocessed. Trusts no size or stride
// that a view states.
#pragma once

#include <span>
#include <vector>

#include "base/error.h"
#include "image/image.h"
#include "io/model_files.h"
#include "vitrail/image.h"

namespace vitrail {

// Returns the inputs [C Y X] of `count` of the images, from `first`, one after the other, made by `threads`
// threads. Throws Error(kUsage) or Error(kData) for an invalid one, which it names.
std::vector<float> inputs_of(std::span<const ImageView> images, size_t first, size_t count,
                             const ModelCard& card, bool upright, int threads);

// Calls `body`; an Error passing through says which of `total` images it is about, where there are several.
template <typename Body>
void naming_image(size_t index, size_t total, Body&& body) {
  if (total == 1) return body();
  with_context(strf("image %zu", index), body);
}

}  // namespace vitrail
