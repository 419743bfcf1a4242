// From attention weights to maps over the patches: which patches a head, a layer or the whole network looks
// at. Pure arithmetic on weights [H N M] of one image; knows no files and no colours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/vit_config.h"

namespace vitrail {

using PatchMap = std::vector<float>;  // grid_height * grid_width, row by row

// What the class token of one head looks at; without a class token, the mean over all tokens.
PatchMap head_map(std::span<const float> weights, const VitConfig& config, int64_t head);

// The mean of all heads.
PatchMap mean_map(std::span<const float> weights, const VitConfig& config);

// Attention rollout (Abnar and Zuidema 2020): heads averaged, half of every token passes by each layer
// unchanged, layers multiplied. `layers` holds [H N M] of every block, first block first.
PatchMap rollout_map(const std::vector<std::vector<float>>& layers, const VitConfig& config);

// Stretched to 0..1 between the given percentiles, so that one odd patch does not darken the rest.
PatchMap stretched(PatchMap map, double low = 0.01, double high = 0.97);

// How widely a map spreads: 0 all on one patch, 1 the same everywhere.
double evenness(const PatchMap& map);

}  // namespace vitrail
