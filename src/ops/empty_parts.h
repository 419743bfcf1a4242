// Nodes of a rank whose part of a dim is empty. Known to who chooses kernels and who runs them, so that no
// kernel needs to care.
#pragma once

#include <algorithm>

#include "ops/flat.h"
#include "ops/fused.h"
#include "ops/grouped.h"

namespace vitrail {

// Returns whether a node writes nothing, or what it writes is a sum over nothing: zeros, and nothing added to
// what it updates.
inline bool computes_nothing(const Op& op, DescSpan ins, DescSpan outs) {
  const auto is_empty = [](const TensorDesc& desc) { return desc.elems() == 0; };
  const std::span<const int> updated = op.updates();
  const bool writes = std::any_of(updated.begin(), updated.end(),
                                  [&](int input) { return !is_empty(ins[static_cast<size_t>(input)]); });
  if (!writes && std::all_of(outs.begin(), outs.end(), is_empty)) return true;
  // These take values that do not belong together, and a fused node's last members may add to the sum.
  if (is<JoinOp>(op) || dynamic_cast<const GroupedOp*>(&op)) return false;
  if (dynamic_cast<const FusedOp*>(&op) && !outs.empty()) return false;
  return !ins.empty() && is_empty(ins[0]);
}

}  // namespace vitrail
