#include "plan/tolerance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/attention.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/many.h"

namespace vitrail {

int64_t reduction_length(const Op& op, DescSpan ins) {
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    const std::vector<TensorDesc> outs = fused->member_outputs(ins);
    int64_t longest = 1;
    for (size_t m = 0; m < fused->members().size(); ++m)
      longest =
          std::max(longest, reduction_length(*fused->members()[m].op, fused->member_inputs(m, ins, outs)));
    return longest;
  }
  if (const auto* many = dynamic_cast<const ManyOp*>(&op)) {
    int64_t longest = 1;
    for (const ManyOp::Part& part : many->parts())
      longest = std::max(longest, reduction_length(*part.op, ins.subspan(part.first, part.count)));
    return longest;
  }
  const std::string_view kind = op.kind();
  const auto is = [&](std::initializer_list<std::string_view> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  if (is({"linear"})) return linear_extents(ins[0].shape, ins[1].shape).k;
  if (is({"linear_dx"})) return linear_dx_extents(ins[0].shape, ins[1].shape).n;
  if (is({"linear_dw"})) return linear_dw_extents(ins[0].shape, ins[1].shape).m;
  if (is({"patch_embed"})) return ins[1].elems() / ins[1].shape.local('D');
  if (is({"patch_embed_dw"})) return ins[1].elems() / ins[1].shape.local('D');
  if (is({"attention", "attention_probs"}))
    return std::max(ins.back().shape[1].local, ins.back().shape.local('E'));
  if (is({"attention_grad"})) {  // the gradient of a probe also sums over pictures
    const AttentionGeometry g = attention_geometry(op, ins.first(ins.size() - 1));
    return std::max(g.keys * (ins.size() == 3 ? g.batch : 1), g.head_size);
  }
  if (is({"layernorm"})) return ins[1].elems();
  if (is({"layernorm_grad", "qk_norm_grad"}))
    return std::max(ins[1].elems(), ins[0].elems() / ins[1].elems());
  if (is({"gelu_grad"})) {
    const std::vector<TensorDesc> outs = op.infer(ins);
    return outs.size() > 1 ? outs[0].elems() / outs[1].elems() : 1;
  }
  if (is({"sum_rows", "scale_dw"})) return ins[0].elems() / op.infer(ins)[0].elems();
  if (is({"sum_tokens"})) return ins[0].shape.local('B');
  if (is({"mean_tokens"})) return ins[0].shape[1].local;
  if (is({"softmax_grad", "cross_entropy", "cross_entropy_grad"})) return ins[0].shape.local('K');
  if (is({"square_sum", "lamb_update"})) return ins[0].elems();
  return 1;
}

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
// Whether a member that rounds comes before a product that rounds its inputs: then values next to a rounding
// boundary may fall to either side of it, and each that does moves the sums by a step of one term.
bool rounds_what_it_made(const FusedOp& fused) {
  for (size_t m = 1; m < fused.members().size(); ++m)
    if (arithmetic_of(*fused.members()[m].op) != Arithmetic::kExact) return true;
  return false;
}

// Tensor cores keep fewer bits than f32 of sums in fp8, and may cut the last bit of tf32 off: as f16 would.
bool sums_as_f16(const Op& op) {
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op))
    return std::any_of(fused->members().begin(), fused->members().end(),
                       [](const FusedOp::Member& member) { return sums_as_f16(*member.op); });
  const Arithmetic arithmetic = arithmetic_of(op);
  return arithmetic == Arithmetic::kFp8 || arithmetic == Arithmetic::kTF32;
}

}  // namespace

Tolerance tolerance_of(const Op& op, DescSpan ins) {
  Tolerance tolerance = tolerance_of(sums_as_f16(op) ? DType::kF16 : DType::kF32, reduction_length(op, ins));
  constexpr double kStep = 0x1p-8;  // half a step of int8 beside the largest value of a row, and of bf16
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (fused && rounds_what_it_made(*fused)) tolerance.relative += 2 * kStep;
  return tolerance;
}

}  // namespace vitrail
