// One list of op examples; the generic tests run over it: every backend and dtype against the reference, and
// the dims rule. A new op joins by adding a row.
#pragma once

#include <string>
#include <vector>

#include "graph/op.h"

namespace vitrail {

struct OpCase {
  std::string name;
  OpPtr op;
  std::vector<Shape> ins;
  std::vector<bool> is_parameter;  // which inputs are parameters, and so may be packed
};

std::vector<OpCase> op_cases();

}  // namespace vitrail
