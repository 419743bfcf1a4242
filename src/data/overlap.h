// How many images of one dataset are also in another: whether a model is tested on what it has learned from.
// Images are told by what they hold, whatever they are called. Knows nothing of models.
#pragma once

#include <vector>

#include "data/dataset.h"

namespace vitrail {

// What an image is known by.
struct ImageMark {
  uint64_t bytes = 0, key = 0;  // Dataset::stored_bytes and contents_key
  bool operator==(const ImageMark&) const = default;
};

// Of at most `most` images, spread evenly; those that cannot be read are left out.
std::vector<ImageMark> marks_of(const Dataset& data, int64_t most);

struct Overlap {
  int64_t looked_at = 0, found = 0;
  int64_t one_in = 1;  // of the images that could be the same, this share was compared
  double share() const;
};

// How many of these images the dataset holds. Reads only images of the same size; where those together take
// more than `most_bytes`, an even share of them.
Overlap find_marks(const std::vector<ImageMark>& marks, const Dataset& data,
                   uint64_t most_bytes = uint64_t{256} << 20);

// Of at most `most` images, spread evenly over `data`: how many `other` holds too.
Overlap overlap_with(const Dataset& data, const Dataset& other, int64_t most = 200);

}  // namespace vitrail
