// Where a bias gradient is the sum over the rows of a value that a layernorm's or gelu's gradient makes, that
// node computes the sums too, and the value is not read again for them. Runs after join_residuals, for
// backends that have such kernels.
#pragma once

#include "graph/program.h"

namespace vitrail {

Program join_row_sums(Program program);

}  // namespace vitrail
