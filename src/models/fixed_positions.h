// Fixed positions as a table like any other, for weight files whose formats have no word for them.
#pragma once

#include <vector>

#include "models/vit_config.h"

namespace vitrail {

// The config of a model that answers the same from a learned table; unchanged where there is one already, or
// none.
VitConfig with_learned_positions(VitConfig config);

// The table of a sincos2d model, [N D].
std::vector<float> fixed_positions(const VitConfig& config);

}  // namespace vitrail
