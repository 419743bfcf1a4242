// Layernorm over D with weight and bias: inputs x [... D], weight [D], bias [D].
#pragma once

#include "graph/op.h"

namespace vitrail {

class LayernormOp : public Op {
 public:
  explicit LayernormOp(double eps) : eps_(eps) {}

  static constexpr std::string_view kKind = "layernorm";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"D"}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[1].elems(); }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  int in_place_input() const override { return 0; }

  double eps() const { return eps_; }

 private:
  double eps_;
};

// Inputs x, weight, dy and, with a residual, the gradient of the residual branch around the norm. Outputs dx
// with that gradient added; dweight and dbias, when the parameters are trained; the sums of dx over all rows,
// if requested. Mean and variance are recomputed from x.
class LayernormGradOp : public Op {
 public:
  LayernormGradOp(double eps, bool parameters, bool residual = false, bool row_sums = false)
      : eps_(eps), parameters_(parameters), residual_(residual), row_sums_(row_sums) {}

  static constexpr std::string_view kKind = "layernorm_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"D"}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  int in_place_input() const override { return residual_ ? 3 : -1; }

  double eps() const { return eps_; }
  bool parameters() const { return parameters_; }
  bool residual() const { return residual_; }
  bool row_sums() const { return row_sums_; }

 private:
  double eps_;
  bool parameters_, residual_, row_sums_;
};

}  // namespace vitrail
