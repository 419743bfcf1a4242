// One generator per differentiable op: the n-th random example of it, tokens 1, 50, 65, 197 and 257 first.
// The gradient test runs over the table; a new op joins by adding a row.
#pragma once

#include <vector>

#include "op_cases.h"

namespace vitrail {

struct GradFamily {
  const char* name;
  // Inputs marked in is_parameter are differentiated, the others are data.
  OpCase (*make)(int64_t n);
};

const std::vector<GradFamily>& grad_families();

}  // namespace vitrail
