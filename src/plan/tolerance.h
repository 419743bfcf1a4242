// How far a kernel's result may lie from the reference: one table, by dtype and reduction length. Used by
// --check ref and by every op test; never widened per test.
#pragma once

#include "graph/op.h"

namespace vitrail {

struct Tolerance {
  double relative = 0;  // of the largest magnitude in the output
  double absolute = 0;
};

// Terms summed into one output element: the contracted extent of products, the row length of norms.
int64_t reduction_length(const Op& op, DescSpan ins);

Tolerance tolerance_of(DType dtype, int64_t reduction_length);

// Of one result of a node. The members of a fused node may round what they hand on to a coarser type than the
// result's.
Tolerance tolerance_of(const Op& op, DescSpan ins, DType result);

}  // namespace vitrail
