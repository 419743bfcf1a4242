// Layernorm with weight and bias: inputs x, and weight and bias of its last dims.
#pragma once

#include <optional>

#include "graph/op.h"

namespace vitrail {

class LayernormOp : public Op {
 public:
  // `result` is the type the output is cast to; none: that of x.
  explicit LayernormOp(double eps, std::optional<DType> result = {}) : eps_(eps), result_(result) {}

  static constexpr std::string_view kKind = "layernorm";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {kNormedDims}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[1].elems(); }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  int in_place_input() const override { return 0; }

  double eps() const { return eps_; }

 private:
  double eps_;
  std::optional<DType> result_;
};

// Inputs x, weight, dy and, with a residual, the gradient of the residual branch around the norm. Outputs dx
// with that gradient added; dweight and dbias, when the parameters are trained; if requested, the sums of dx
// over all rows, and dx once more in another type. Mean and variance are recomputed from x.
class LayernormGradOp : public Op {
 public:
  LayernormGradOp(double eps, bool parameters, bool residual = false, bool row_sums = false,
                  std::optional<DType> copy = {})
      : eps_(eps), parameters_(parameters), residual_(residual), row_sums_(row_sums), copy_(copy) {}

  static constexpr std::string_view kKind = "layernorm_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {kNormedDims}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  int in_place_input() const override { return residual_ ? 3 : -1; }

  double eps() const { return eps_; }
  bool parameters() const { return parameters_; }
  bool residual() const { return residual_; }
  bool row_sums() const { return row_sums_; }
  std::optional<DType> copy() const { return copy_; }
  // The outputs that hold the sums and the copy, where there are any.
  size_t sums_at() const { return parameters_ ? 3 : 1; }
  size_t copy_at() const { return sums_at() + (row_sums_ ? 1 : 0); }

 private:
  double eps_;
  bool parameters_, residual_, row_sums_;
  std::optional<DType> copy_;
};

}  // namespace vitrail
