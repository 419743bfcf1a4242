// Merges a layernorm's gradient with the add of the residual branch's gradient into one node, so that the sum
// costs no extra pass over memory. Runs after recompute, before fuse.
#pragma once

#include "graph/program.h"

namespace vitrail {

Program join_residuals(Program program);

}  // namespace vitrail
