// A gelu that keeps what its gradient needs. GeluSlopeOp returns, beside the gelu of x, its slope there;
// GeluSlopeGradOp then only multiplies, where GeluGradOp would compute the slope from x again. The pass
// keep_slopes puts the two in place of the plain ones.
#pragma once

#include "ops/expect.h"
#include "ops/gelu.h"

namespace vitrail {

// x -> gelu(x), and its derivative at x.
class GeluSlopeOp : public Op {
 public:
  explicit GeluSlopeOp(bool tanh_form) : tanh_form_(tanh_form) {}

  static constexpr std::string_view kKind = "gelu_slope";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override {
    expect_inputs(*this, ins, 1);
    return {ins[0], ins[0]};
  }
  DimsRule dims() const override { return {}; }
  double flops(DescSpan, DescSpan outs) const override { return 16.0 * static_cast<double>(outs[0].elems()); }
  std::string attributes() const override { return tanh_form_ ? "tanh" : "erf"; }

  bool tanh_form() const { return tanh_form_; }

 private:
  bool tanh_form_;
};

// dx from the slope and dy and, if requested, its sums over all rows: the gradient of the bias before the
// gelu.
class GeluSlopeGradOp : public Op {
 public:
  explicit GeluSlopeGradOp(bool row_sums = false) : row_sums_(row_sums) {}

  static constexpr std::string_view kKind = "gelu_slope_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override {
    return GeluGradOp(false, row_sums_).infer(ins);
  }
  DimsRule dims() const override { return {}; }
  int64_t reduction_length(DescSpan ins) const override {
    return GeluGradOp(false, row_sums_).reduction_length(ins);
  }
  PrecisionRole precision_role() const override { return PrecisionRole::kLikeFirst; }
  std::string attributes() const override { return row_sums_ ? "sums" : ""; }
  int in_place_input() const override { return 1; }

  bool row_sums() const { return row_sums_; }

 private:
  bool row_sums_;
};

}  // namespace vitrail
