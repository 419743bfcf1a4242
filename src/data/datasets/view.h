// Parts of a dataset that look like one: some of its samples, some of its classes, other class names. Who
// belongs to a part is decided by a hash of the sample's name, so that it never depends on the order of
// files, on threads or on a seed. Knows no format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace vitrail {

using SharedDataset = std::shared_ptr<const Dataset>;

inline constexpr int32_t kDropped = -1;

// The samples `indices` with label l renumbered to numbers[l]; labels of a dropped class go away. A sample
// left without a label must be multi-label.
std::unique_ptr<Dataset> make_view(SharedDataset base, std::vector<int64_t> indices,
                                   const std::vector<int32_t>& numbers, std::vector<std::string> classes);

// Only the classes named, in the data's order. An image of several labels stays whatever it shows.
std::unique_ptr<Dataset> keep_classes(SharedDataset base, const std::vector<std::string>& names);

// The same samples under other class names, one each.
std::unique_ptr<Dataset> rename_classes(SharedDataset base, std::vector<std::string> names);

// The same samples with labels numbered as in `classes`, which must know every class of `base`.
std::unique_ptr<Dataset> align_classes(SharedDataset base, const std::vector<std::string>& classes);

// Of every class the same share, rounded up. Samples of several labels count by their first.
std::vector<int64_t> stratified_share(const Dataset& dataset, double fraction);

struct HashSplit {
  std::vector<int64_t> kept, split_off;
};
// Each sample is split off with probability `fraction`, whatever else is in the set: images that are added
// later move no other.
HashSplit split_by_name(const Dataset& dataset, double fraction);

}  // namespace vitrail
