// Fixed positions as a learned table, for weight files whose formats have no field for fixed ones.
#pragma once

#include <vector>

#include "models/vit_config.h"

namespace vitrail {

// Returns the config of a model with the same outputs and a learned table; unchanged where there is one
// already, or no positions.
VitConfig with_learned_positions(VitConfig config);

// Returns the position table of a sincos2d model, [N D].
std::vector<float> fixed_positions(const VitConfig& config);

}  // namespace vitrail
