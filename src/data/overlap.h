// How many images of one dataset are also in another: whether a model is tested on what it has learned from.
// Used by `eval`. Knows nothing of models.
#pragma once

#include "data/dataset.h"

namespace vitrail {

struct Overlap {
  int64_t looked_at = 0, found = 0;
  double share() const { return looked_at ? static_cast<double>(found) / static_cast<double>(looked_at) : 0; }
};

// Of at most `most` images, spread evenly over `data`: how many `other` holds too, with the same content
// under the same name and folder (whatever lies above that folder). Images that cannot be read are not found.
Overlap overlap_with(const Dataset& data, const Dataset& other, int64_t most = 200);

}  // namespace vitrail
