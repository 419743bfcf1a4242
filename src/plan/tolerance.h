// Errors of sums by dtype and reduction length, one table: what f32 leaves of an op's result whose roundings
// runtime/check/noise.h does not follow one by one, and what products of rounded factors may differ by.
#pragma once

#include "graph/op.h"

namespace vitrail {

struct Tolerance {
  double relative = 0;  // of the largest magnitude in the output
  double absolute = 0;
};

// Half a unit in the last place of 1.
double roundoff(DType dtype);

Tolerance tolerance_of(DType dtype, int64_t reduction_length);

// Of a node before its result is rounded: the sums of a product of rounded factors may be coarser than f32.
Tolerance tolerance_of(const Op& op, DescSpan ins);

}  // namespace vitrail
