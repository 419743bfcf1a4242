// RMSNorm, or its simple form, over E of the q and k parts of packed qkv [B N T H E]; v passes through.
// Inputs: qkv, q weight [E], k weight [E].
#pragma once

#include "graph/op.h"

namespace vitrail {

class QkRmsnormOp : public Op {
 public:
  explicit QkRmsnormOp(double eps, bool simple = false) : eps_(eps), simple_(simple) {}

  static constexpr std::string_view kKind = "qk_rmsnorm";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"TE"}; }
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

// Its gradient. Inputs qkv, q weight, k weight, dy; outputs dqkv and, when the weights are trained, the
// gradients of both.
class QkRmsnormGradOp : public Op {
 public:
  QkRmsnormGradOp(double eps, bool parameters, bool simple = false)
      : eps_(eps), parameters_(parameters), simple_(simple) {}

  static constexpr std::string_view kKind = "qk_rmsnorm_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"TE"}; }
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
