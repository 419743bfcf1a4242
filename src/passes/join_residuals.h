// Where a layernorm's gradient is added to the gradient that passed beside the norm, makes the two one node:
// the sum costs no pass over memory of its own. Runs after recompute, before fuse.
#pragma once

#include "graph/program.h"

namespace vitrail {

Program join_residuals(Program program);

}  // namespace vitrail
