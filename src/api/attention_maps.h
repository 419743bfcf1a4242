// Attention weights turned into maps over the patches: which patches a head, a layer or the whole network
// attends to. Pure arithmetic on weights [H N M] of one image; knows no files and no colours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/vit_config.h"

namespace vitrail {

using PatchMap = std::vector<float>;  // grid_height * grid_width, row by row

// Returns the attention of the class token in one head; without a class token, the mean over all tokens.
PatchMap head_map(std::span<const float> weights, const VitConfig& config, int64_t head);

// Returns the mean over all heads.
PatchMap mean_map(std::span<const float> weights, const VitConfig& config);

// Attention rollout (Abnar and Zuidema 2020): heads are averaged, half of every token passes each layer
// unchanged (the residual), and the layers are multiplied. `layers` holds [H N M] of every block, first block
// first.
PatchMap rollout_map(const std::vector<std::vector<float>>& layers, const VitConfig& config);

// Returns the map stretched to 0..1 between the given percentiles, so that one outlier patch does not darken
// the rest.
PatchMap stretched(PatchMap map, double low = 0.01, double high = 0.97);

// Returns how evenly a map is spread: 0 is all on one patch, 1 is uniform.
double evenness(const PatchMap& map);

}  // namespace vitrail
