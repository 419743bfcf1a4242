// Named ViTs under timm's names, as rows of data.
#pragma once

#include <string_view>
#include <vector>

#include "image/preprocess_config.h"
#include "models/vit_config.h"

namespace vitrail {

struct ZooEntry {
  VitConfig config;             // config.arch is the name
  PreprocessConfig preprocess;  // timm's published default for that name
};

const std::vector<ZooEntry>& zoo();

// Finds a row by its exact name ("vit_base_patch16_224"); a timm tag after a dot ("….augreg_in21k_ft_in1k")
// is accepted. Throws Error(kUsage) with the nearest names.
const ZooEntry& find_architecture(std::string_view name);
// Returns whether this is the name of a plain ViT, even of one that is not supported.
bool is_architecture(std::string_view name);

}  // namespace vitrail
