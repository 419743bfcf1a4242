// Turns a differentiated f32 program into one that computes in bf16 or f16. Types by role:
//   GEMMs and attention, their weights and saved inputs       the compute type
//   vectors (biases, norms, tokens, positions)                f32 parameters as they are
//   statistics, losses, gradient sums, master weights         f32
//   the residual stream                                       f32 or the compute type, by option
// A weight that GEMMs read gets a copy "<name>@bf16", which the update program refreshes from its master.
// Runs after differentiate.
#pragma once

#include <string>
#include <vector>

#include "graph/program.h"

namespace vitrail {

struct PrecisionOptions {
  DType compute = DType::kF32;
  DType residual = DType::kF32;
  bool keep_masters = true;  // false: GEMM weights and biases are stored in the compute type only (inference)
};

// A copy of a parameter in the type that a program computes with.
struct LowCopy {
  std::string master, name;  // of the values: "w", "w@bf16"
  DType dtype = DType::kF32;
  bool operator==(const LowCopy&) const = default;
};
inline LowCopy low_copy_of(const std::string& master, DType dtype) {
  return {master, master + "@" + to_string(dtype), dtype};
}

struct PreciseProgram {
  Program program;
  std::vector<LowCopy> copies;
};

PreciseProgram precision(Program program, const PrecisionOptions& options);

}  // namespace vitrail
