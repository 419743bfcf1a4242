#include "plan/tolerance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/fused.h"
#include "ops/linear.h"

namespace vitrail {

double roundoff(DType dtype) {
  constexpr std::pair<DType, double> kRows[] = {
      {DType::kF64, 0x1p-53}, {DType::kF32, 0x1p-24}, {DType::kF16, 0x1p-11}, {DType::kBF16, 0x1p-8}};
  for (const auto& [known, value] : kRows)
    if (known == dtype) return value;
  throw Error(ErrorKind::kInternal, strf("no tolerance for %s", to_string(dtype)));
}

// Rounding errors of a sum of n terms grow like sqrt(n) times the unit roundoff; 8 leaves room for the
// cancellation a layernorm or softmax before the sum brings.
Tolerance tolerance_of(DType dtype, int64_t length) {
  return {8 * roundoff(dtype) * std::sqrt(static_cast<double>(std::max<int64_t>(length, 1))),
          4 * roundoff(dtype)};
}

namespace {
// Returns whether a member that rounds comes before a GEMM that rounds its inputs: then values next to a
// rounding boundary may fall to either side of it, and each that does moves the sums by a step of one term.
bool rounds_what_it_made(const FusedOp& fused) {
  for (size_t m = 1; m < fused.members().size(); ++m)
    if (arithmetic_of(*fused.members()[m].op) != Arithmetic::kExact) return true;
  return false;
}

// Tensor cores keep fewer bits than f32 when summing in fp8, and may truncate the last bit of tf32, so both
// are bounded as f16.
bool sums_as_f16(const Op& op) {
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op))
    return std::any_of(fused->members().begin(), fused->members().end(),
                       [](const FusedOp::Member& member) { return sums_as_f16(*member.op); });
  const Arithmetic arithmetic = arithmetic_of(op);
  return arithmetic == Arithmetic::kFp8 || arithmetic == Arithmetic::kTF32;
}

}  // namespace

Tolerance tolerance_of(const Op& op, DescSpan ins) {
  Tolerance tolerance = tolerance_of(sums_as_f16(op) ? DType::kF16 : DType::kF32, op.reduction_length(ins));
  constexpr double kStep = 0x1p-8;  // half a step of int8 relative to the largest value of a row, and of bf16
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  const bool steps = fused && rounds_what_it_made(*fused);
  if (steps) tolerance.relative += 2 * kStep;
  // Times 2.5, which judge() allows, these are the 0.005 and 0.02 that kernels keep in the op tests.
  if (sums_as_f16(op)) tolerance.typical = steps ? 0.008 : 0.002;
  return tolerance;
}

}  // namespace vitrail
