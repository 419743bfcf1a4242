// Rounding errors of sums by dtype and reduction length, in one table: for ops whose roundings
// runtime/check/noise.h does not follow one by one, and for GEMMs of rounded factors.
#pragma once

#include "graph/op.h"

namespace vitrail {

struct Tolerance {
  double relative = 0;  // relative to the largest magnitude of the output
  double absolute = 0;
  // Root mean square error relative to that of the output; 0: as if errors were spread evenly up to the
  // bound.
  double typical = 0;
};

// Returns half a unit in the last place of 1.
double roundoff(DType dtype);

Tolerance tolerance_of(DType dtype, int64_t reduction_length);

// Returns the tolerance of a node before its result is rounded: the sums of a GEMM with rounded inputs may be
// coarser than f32.
Tolerance tolerance_of(const Op& op, DescSpan ins);

}  // namespace vitrail
