// Samples of a dataset for people to look at: square tiles under their labels, and files of their own.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/overlay.h"

namespace vitrail {

inline constexpr int64_t kTileLabelScale = 2;

// Returns what the label font can show of a sample's classes, cut to the tile's width.
std::string tile_label(const Dataset& data, int64_t index, int64_t side);
// An RGB crop of `side` x `side`.
Image square_tile(const Image& image, int64_t side);

// Writes each sample as "folder/label-sample.png", as it is stored; the folder is there.
void write_samples(const Dataset& data, const std::vector<int64_t>& samples, const std::string& folder);

}  // namespace vitrail
