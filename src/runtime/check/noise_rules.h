// The rules by which noise propagates through an op, one file per family; noise.cpp has the table.
#pragma once

#include "plan/tolerance.h"
#include "runtime/check/noise.h"

namespace vitrail::noise {

inline constexpr double kF32 = 0x1p-24;
// The error of a sum, up to a whole unit, because tensor cores truncate instead of rounding.
inline constexpr double kSum = 2 * kF32;
// The error of an elementary function in f32 and the few operations around it.
inline constexpr double kFunction = 4 * kF32;

double square(double x);
Noise silence(size_t elems);
// Returns the same bound for every element, relative to the largest.
Noise alike(const Tolerance& tolerance, const Values& values);
// Returns half a unit in the last place of `value` in the type, or of its smallest step where that is larger.
double rounding_of(DType type, double value);
// Returns the coarsest 16-bit type among the node's operands; f32 where there is none.
DType narrow_type(DescSpan descs);

struct Args {
  const NoiseQuery& query;
  std::span<const Known> results;
  std::span<const DType> types;  // of the results
  size_t result;                 // the one to compute the noise of
  const Known& out;              // results[result]
};
Noise of_linear(const Args& args);
Noise of_linear_dx(const Args& args);
Noise of_linear_dw(const Args& args);
Noise of_patch_embed(const Args& args);
Noise of_patch_embed_dw(const Args& args);
Noise of_attention(const Args& args);
Noise of_attention_grad(const Args& args);
Noise of_attention_sums(const Args& args);
Noise of_attention_bias_grad(const Args& args);
Noise of_attention_sums_grad(const Args& args);
Noise of_gelu(const Args& args);
Noise of_gelu_grad(const Args& args);
Noise of_gelu_slope(const Args& args);
Noise of_gelu_slope_grad(const Args& args);
// The noise of a result that sums result 0, of noise `of_rows`, over all rows: a kernel may sum values that
// are rounded already.
Noise of_row_sums(const Args& args, const Noise& of_rows);
Noise of_layernorm_grad(const Args& args);
Noise of_sum(const Args& args);    // x + y, y repeated where it is shorter
Noise of_scale(const Args& args);  // x * y, the same
// The rule for any other op: the f32 error for the length of its sums, relative to the largest result.
Noise of_any(const Args& args);

}  // namespace vitrail::noise
