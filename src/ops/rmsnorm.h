// RMSNorm with weight: inputs x, and weight of its last dims. Its simple form, timm's SimpleNorm, divides by
// the deviation (of n - 1) in place of the root of the mean square, and does not subtract the mean either.
#pragma once

#include "graph/op.h"

namespace vitrail {

class RmsnormOp : public Op {
 public:
  explicit RmsnormOp(double eps, bool simple = false) : eps_(eps), simple_(simple) {}

  static constexpr std::string_view kKind = "rmsnorm";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {kNormedDims}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[1].elems(); }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  int in_place_input() const override { return 0; }

  double eps() const { return eps_; }
  bool simple() const { return simple_; }

 private:
  double eps_;
  bool simple_;
};

// The gradient of RMSNorm. Inputs x, weight, dy; outputs dx and, when the weight is trained, dweight.
class RmsnormGradOp : public Op {
 public:
  RmsnormGradOp(double eps, bool parameters, bool simple = false)
      : eps_(eps), parameters_(parameters), simple_(simple) {}

  static constexpr std::string_view kKind = "rmsnorm_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {kNormedDims}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;

  double eps() const { return eps_; }
  bool parameters() const { return parameters_; }
  bool simple() const { return simple_; }

 private:
  double eps_;
  bool parameters_, simple_;
};

}  // namespace vitrail
