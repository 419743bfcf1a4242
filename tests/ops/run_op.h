// Runs one op as a program of its own through planner, parameter loading and executor.
#pragma once

#include <vector>

#include "op_cases.h"
#include "runtime/executor.h"

namespace vitrail {

// Values of one input, in double, row-major.
using Values = std::vector<double>;

struct RunSettings {
  const char* backend = "ref";
  const char* isa = "";
  DType dtype = DType::kF64;
  int threads = 1;
};

// Random inputs of a case, a function of (case name, input, element); representable in `dtype`.
std::vector<Values> random_inputs(const OpCase& c, DType dtype);

// Shapes may differ from the case's (a shard); `inputs` match them.
Values run_op(const OpCase& c, const std::vector<Shape>& shapes, const std::vector<Values>& inputs,
              const RunSettings& settings);

Shape output_shape(const OpCase& c, const std::vector<Shape>& shapes, DType dtype);

}  // namespace vitrail
