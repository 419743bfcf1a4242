// Runs one op as a program of its own through planner, parameter loading and executor.
#pragma once

#include <vector>

#include "op_cases.h"
#include "runtime/check/noise.h"
#include "runtime/executor.h"

namespace vitrail {

struct RunSettings {
  const char* backend = "ref";
  const char* isa = "";
  DType dtype = DType::kF64;
  bool full_vectors = false;  // those in f32 whatever the dtype
  int threads = 1;
  int runs = 1;  // from the same inputs; a device that records repeats from the second on
  // At its launch a prepared kernel sees neither an op nor shapes, and the node it was prepared for is gone;
  // not so the reference's. For a case of op_cases().
  bool blind = false;
  int compute = 0;          // of the GPU for which kernels are chosen; 0: of the one that runs them
  const char* kernel = "";  // what a table names for the op, which then runs; empty: there is no table
};

struct Result {
  TensorDesc desc;
  Values values;
  bool operator==(const Result&) const = default;
};

std::vector<TensorDesc> input_descs(const OpCase& c, const std::vector<Shape>& shapes,
                                    const RunSettings& settings);

// Inputs of a case, a function of (case name, input, element), representable in the types of `settings`.
std::vector<Values> make_inputs(const OpCase& c, const RunSettings& settings);

// The values as elements of this type hold them.
Values rounded(const Values& values, DType type);

// The outputs, then the inputs the op updates. Shapes may differ from the case's (a shard); `inputs` match
// them. An input that the op may overwrite is a value computed before it, so that it does.
std::vector<Result> run_op(const OpCase& c, const std::vector<Shape>& shapes,
                           const std::vector<Values>& inputs, const RunSettings& settings);

// Returns what the kernels that would run it declare to round.
Rounding op_rounding(const OpCase& c, const std::vector<Shape>& shapes, const RunSettings& settings);

}  // namespace vitrail
