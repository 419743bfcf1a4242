#include "plan/tolerance.h"

#include <algorithm>
#include <cmath>

#include "ops/fused.h"
#include "ops/linear.h"

namespace vitrail {

int64_t reduction_length(const Op& op, DescSpan ins) {
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    const std::vector<TensorDesc> outs = fused->member_outputs(ins);
    int64_t longest = 1;
    for (size_t m = 0; m < outs.size(); ++m)
      longest =
          std::max(longest, reduction_length(*fused->members()[m].op, fused->member_inputs(m, ins, outs)));
    return longest;
  }
  if (op.kind() == "linear") return linear_extents(ins[0].shape, ins[1].shape).k;
  if (op.kind() == "patch_embed") return ins[1].elems() / ins[1].shape.local('D');
  if (op.kind() == "attention" || op.kind() == "attention_probs")
    return std::max(ins.back().shape[1].local, ins.back().shape.local('E'));
  if (op.kind() == "layernorm") return ins[1].elems();
  if (op.kind() == "mean_tokens") return ins[0].shape[1].local;
  return 1;
}

// Rounding errors of a sum of n terms grow like sqrt(n) times the unit roundoff; 8 leaves room for the
// cancellation a layernorm or softmax before the sum brings.
Tolerance tolerance_of(DType dtype, int64_t length) {
  struct Row {
    DType dtype;
    double roundoff;
  };
  constexpr Row kRows[] = {
      {DType::kF64, 0x1p-53}, {DType::kF32, 0x1p-24}, {DType::kF16, 0x1p-11}, {DType::kBF16, 0x1p-8}};
  for (const Row& row : kRows)
    if (row.dtype == dtype)
      return {8 * row.roundoff * std::sqrt(static_cast<double>(std::max<int64_t>(length, 1))),
              4 * row.roundoff};
  throw Error(ErrorKind::kInternal, strf("no tolerance for %s", to_string(dtype)));
}

}  // namespace vitrail
