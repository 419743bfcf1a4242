// Counts the images of one dataset that are also in another: whether a model is tested on its training data.
// Images are identified by content, not by name. Knows nothing of models.
#pragma once

#include <vector>

#include "data/dataset.h"

namespace vitrail {

// The identity of an image.
struct ImageMark {
  uint64_t bytes = 0, key = 0;  // Dataset::stored_bytes and contents_key
  bool operator==(const ImageMark&) const = default;
};

// Returns the marks of at most `most` images, spread evenly; those that cannot be read are left out.
std::vector<ImageMark> marks_of(const Dataset& data, int64_t most);

struct Overlap {
  int64_t looked_at = 0, found = 0;
  int64_t one_in = 1;  // the share of candidate images that was compared, as 1 / one_in
  double share() const;
};

// Counts how many of these images the dataset holds. It reads only images of the same size; where those
// together take more than `most_bytes`, an even share of them.
Overlap find_marks(const std::vector<ImageMark>& marks, const Dataset& data,
                   uint64_t most_bytes = uint64_t{256} << 20);

// Counts how many of at most `most` images, spread evenly over `data`, are in `other` too.
Overlap overlap_with(const Dataset& data, const Dataset& other, int64_t most = 200);

}  // namespace vitrail
