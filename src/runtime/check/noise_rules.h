// The rules by which noise passes through an op, one file a family; noise.cpp has the table.
#pragma once

#include "plan/tolerance.h"
#include "runtime/check/noise.h"

namespace vitrail::noise {

inline constexpr double kF32 = 0x1p-24;
// Sums may be cut instead of rounded, as tensor cores do: errors of up to a whole unit.
inline constexpr double kSum = 2 * kF32;
// An elementary function of f32, and the few operations around it.
inline constexpr double kFunction = 4 * kF32;

double square(double x);
Noise silence(size_t elems);
// The same bound for every element, in the measure of the largest.
Noise alike(const Tolerance& tolerance, const Values& values);
// Half a unit in the last place of a value of the type: of its own size, or of the smallest there is.
double rounding_of(DType type, double value);
// The coarsest type of 16 bits among the node's operands; f32 where there is none.
DType narrow_type(DescSpan descs);

struct Args {
  const NoiseQuery& query;
  std::span<const Known> results;
  std::span<const DType> types;  // of the results
  size_t result;                 // which one is asked about
  const Known& out;              // results[result]
};
Noise of_linear(const Args& args);
Noise of_linear_dx(const Args& args);
Noise of_linear_dw(const Args& args);
Noise of_patch_embed(const Args& args);
Noise of_patch_embed_dw(const Args& args);
Noise of_attention(const Args& args);
Noise of_attention_grad(const Args& args);
Noise of_gelu(const Args& args);
Noise of_gelu_grad(const Args& args);
Noise of_layernorm_grad(const Args& args);
Noise of_sum(const Args& args);    // x + y, y repeated where it is shorter
Noise of_scale(const Args& args);  // x * y, the same
// Whatever the op: an error of f32 by the length of its sums, in the measure of the largest result.
Noise of_any(const Args& args);

}  // namespace vitrail::noise
