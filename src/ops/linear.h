// Linear layer as a GEMM over named dims: contracts the dims that x and w share, which are the last ones of
// both, and keeps the others: x [B N D], w [F D] -> [B N F]; w [T H E D] -> [B N T H E]; x [B N H E], w
// [D H E] -> [B N D].
#pragma once

#include "base/enum_names.h"
#include "graph/op.h"

namespace vitrail {

// The arithmetic of a GEMM, independent of the types of x, w and the result.
//   bf16: x and w rounded to bf16, GEMMs summed in f32.
//   int8: w rounded to integers of -127..127 times one scale per output, x times one scale per row (largest
//   magnitude / 127 both, computed anew on every call), sums exact, then sum * row scale * output scale in
//   f32. A row or output with a value that is not finite gives not-a-number.
//   fp8: the same with e4m3 in place of integers (largest magnitude / 448), summed in f32.
//   tf32: x and w rounded to 10 bits of mantissa, GEMMs summed in f32.
enum class Arithmetic { kExact, kBF16, kInt8, kFp8, kTF32 };
template <>
struct EnumNames<Arithmetic> {
  static constexpr const char* names[] = {"exact", "bf16", "int8", "fp8", "tf32"};
};

class LinearOp : public Op {
 public:
  explicit LinearOp(Arithmetic arithmetic = Arithmetic::kExact) : arithmetic_(arithmetic) {}

  static constexpr std::string_view kKind = "linear";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {.whole = "", .linear_in = 0b11}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  int weight_input() const override { return 1; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;

  Arithmetic arithmetic() const { return arithmetic_; }

 private:
  Arithmetic arithmetic_;
};

// The GEMM of plain matrices: out[m, n] = x[m, k] . w[n, k].
struct MatmulExtents {
  int64_t m, n, k;
};
MatmulExtents linear_extents(const Shape& x, const Shape& w);

// The gradient of x: dy [B N F], w [F D] -> [B N D]. It contracts the leading dims of w with the last ones of
// dy. The arithmetic is exact, fp8 (a scale per row of dy and per column of w, which is the output here) or
// tf32.
class LinearDxOp : public Op {
 public:
  explicit LinearDxOp(Arithmetic arithmetic = Arithmetic::kExact) : arithmetic_(arithmetic) {}

  static constexpr std::string_view kKind = "linear_dx";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {.whole = "", .linear_in = 0b11}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  int weight_input() const override { return 1; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;

  Arithmetic arithmetic() const { return arithmetic_; }

 private:
  Arithmetic arithmetic_;
};

// The gradient of w: x [B N D], dy [B N F] -> [F D] in the accumulator's type. It contracts the leading dims
// the two share. The arithmetic is exact or tf32.
class LinearDwOp : public Op {
 public:
  explicit LinearDwOp(Arithmetic arithmetic = Arithmetic::kExact) : arithmetic_(arithmetic) {}

  static constexpr std::string_view kKind = "linear_dw";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {.whole = "", .linear_in = 0b11}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kCompute; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;

  Arithmetic arithmetic() const { return arithmetic_; }

 private:
  Arithmetic arithmetic_;
};

// Returns the arithmetic of LinearOp, LinearDxOp or LinearDwOp; kExact for every other op.
Arithmetic arithmetic_of(const Op& op);

// The gradients as GEMMs of plain matrices, with the extents of the forward one: dx[m, k] = dy[m, n] .
// w[n, k] and dw[n, k] = sum over m of dy[m, n] x[m, k].
MatmulExtents linear_dx_extents(const Shape& dy, const Shape& w);
MatmulExtents linear_dw_extents(const Shape& x, const Shape& dy);

}  // namespace vitrail
