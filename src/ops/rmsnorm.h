// RMSNorm over D, with weight: inputs x [... D], weight [D].
#pragma once

#include "graph/op.h"

namespace vitrail {

class RmsnormOp : public Op {
 public:
  explicit RmsnormOp(double eps) : eps_(eps) {}

  static constexpr std::string_view kKind = "rmsnorm";
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

// The gradient of RMSNorm. Inputs x, weight, dy; outputs dx and, when the weight is trained, dweight.
class RmsnormGradOp : public Op {
 public:
  RmsnormGradOp(double eps, bool parameters) : eps_(eps), parameters_(parameters) {}

  static constexpr std::string_view kKind = "rmsnorm_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"D"}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;

  double eps() const { return eps_; }
  bool parameters() const { return parameters_; }

 private:
  double eps_;
  bool parameters_;
};

}  // namespace vitrail
