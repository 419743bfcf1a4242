// Counts the images of one dataset that are also in another: whether a model is tested on its training data.
// Images are identified by content, not by name. Knows nothing of models.
#pragma once

#include <limits>
#include <vector>

#include "data/dataset.h"

namespace vitrail {

// The identity of an image.
struct ImageMark {
  uint64_t bytes = 0, key = 0;  // Dataset::stored_bytes and contents_key
  bool operator==(const ImageMark&) const = default;
};

// Returns the marks of at most `most` images, spread evenly; empty files and those that cannot be read are
// left out.
std::vector<ImageMark> marks_of(const Dataset& data, int64_t most);

struct Overlap {
  int64_t looked_at = 0, found = 0;
  int64_t one_in = 1;  // the share of candidate images that was compared, as 1 / one_in
  double share() const;
};

// Bounds what is read for a search. Of more images than that, and of those that are read, of more bytes, an
// even share stands for all.
struct SearchLimits {
  uint64_t bytes = uint64_t{256} << 20;
  int64_t images = std::numeric_limits<int64_t>::max();
};

// Counts how many of these images the dataset holds. It reads only images of the same size; one that nobody
// can decode is not found, since nobody has learned from it.
Overlap find_marks(const std::vector<ImageMark>& marks, const Dataset& data, SearchLimits limits = {});

struct MarkSearch {
  Overlap overlap;
  std::vector<ImageMark> missing;  // the marks of images that were not found
};
// Does the same and returns what is left.
MarkSearch search_marks(const std::vector<ImageMark>& marks, const Dataset& data, SearchLimits limits = {});

// Counts how many of at most `most` images, spread evenly over `data`, are in `other` too.
Overlap overlap_with(const Dataset& data, const Dataset& other, int64_t most = 200, SearchLimits limits = {});

}  // namespace vitrail
