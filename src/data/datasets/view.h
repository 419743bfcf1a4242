// Views of a dataset: some of its samples, some of its classes, other class names. A hash of the sample's
// name decides which part it belongs to, so that it never depends on the order of files, on threads or on a
// seed. Knows no format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace vitrail {

using SharedDataset = std::shared_ptr<const Dataset>;

inline constexpr int32_t kDropped = -1;

// Returns the samples `indices` with label l renumbered to numbers[l]; labels of a dropped class are removed.
// A sample left without a label must be multi-label.
std::unique_ptr<Dataset> make_view(SharedDataset base, std::vector<int64_t> indices,
                                   const std::vector<int32_t>& numbers, std::vector<std::string> classes);

// Keeps only the named classes, in the data's order. An image with several labels always stays.
std::unique_ptr<Dataset> keep_classes(SharedDataset base, const std::vector<std::string>& names);

// Returns the same samples under other class names, one each.
std::unique_ptr<Dataset> rename_classes(SharedDataset base, std::vector<std::string> names);

// Returns the same samples with labels numbered as in `classes`, which must include every class of `base`.
std::unique_ptr<Dataset> align_classes(SharedDataset base, const std::vector<std::string>& classes);

// Returns the same share of every class, rounded up. Samples with several labels count by their first.
std::vector<int64_t> stratified_share(const Dataset& dataset, double fraction);

struct HashSplit {
  std::vector<int64_t> kept, split_off;
};
// Splits off each sample with probability `fraction`, independent of the rest of the set: images that are
// added later move no other.
HashSplit split_by_name(const Dataset& dataset, double fraction);

}  // namespace vitrail
