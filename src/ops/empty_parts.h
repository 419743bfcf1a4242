// Nodes of a rank whose part of a dim is empty. Known to who chooses kernels and who runs them, so that no
// kernel needs to care.
#pragma once

#include "graph/op.h"

namespace vitrail {

// Returns whether a node writes nothing, or what it writes is a sum over nothing: zeros, and nothing added to
// what it updates.
bool computes_nothing(const Op& op, DescSpan ins, DescSpan outs);

}  // namespace vitrail
