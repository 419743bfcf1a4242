// Gaussian error linear unit: x Phi(x) with the exact erf, or its tanh approximation.
#pragma once

#include "graph/op.h"

namespace vitrail {

class GeluOp : public Op {
 public:
  explicit GeluOp(bool tanh_form) : tanh_form_(tanh_form) {}

  static constexpr std::string_view kKind = "gelu";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return tanh_form_ ? "tanh" : "erf"; }
  int in_place_input() const override { return 0; }

  bool tanh_form() const { return tanh_form_; }

 private:
  bool tanh_form_;
};

// Computes dx from x and dy and, if requested, its sums over all rows: the gradient of the bias before the
// gelu.
class GeluGradOp : public Op {
 public:
  explicit GeluGradOp(bool tanh_form, bool row_sums = false) : tanh_form_(tanh_form), row_sums_(row_sums) {}

  static constexpr std::string_view kKind = "gelu_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  int64_t reduction_length(DescSpan ins) const override;
  PrecisionRole precision_role() const override { return PrecisionRole::kLikeFirst; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override {
    return std::string(tanh_form_ ? "tanh" : "erf") + (row_sums_ ? " sums" : "");
  }
  int in_place_input() const override { return 1; }

  bool tanh_form() const { return tanh_form_; }
  bool row_sums() const { return row_sums_; }

 private:
  bool tanh_form_, row_sums_;
};

}  // namespace vitrail
