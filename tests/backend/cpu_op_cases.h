// One node of each op that training adds, as the CPU kernel tests run them.
#pragma once

#include <string>
#include <vector>

#include "graph/op.h"

namespace vitrail::testing {

struct OpCase {
  std::string name;
  OpPtr op;
  std::vector<TensorDesc> ins;  // floats in f32
  int64_t length = 1;           // terms of a sum
};

TensorDesc f32(Shape shape);
std::vector<OpCase> update_cases();
std::vector<OpCase> training_cases();  // those and all others

}  // namespace vitrail::testing
