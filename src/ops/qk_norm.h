// Layernorm over E of the q and k parts of packed qkv [B N T H E]; v passes through.
// Inputs: qkv, q weight [E], q bias [E], k weight [E], k bias [E].
#pragma once

#include "graph/op.h"

namespace vitrail {

class QkNormOp : public Op {
 public:
  explicit QkNormOp(double eps) : eps_(eps) {}

  static constexpr std::string_view kKind = "qk_norm";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"TE"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  int in_place_input() const override { return 0; }

  double eps() const { return eps_; }

 private:
  double eps_;
};

// The gradient of the q/k norm. Inputs qkv, q weight, k weight, dy; outputs dqkv and, when the parameters are
// trained, the gradients of q weight, q bias, k weight, k bias.
class QkNormGradOp : public Op {
 public:
  QkNormGradOp(double eps, bool parameters) : eps_(eps), parameters_(parameters) {}

  static constexpr std::string_view kKind = "qk_norm_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"TE"}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;

  double eps() const { return eps_; }

 private:
  double eps_;
  bool parameters_;
};

}  // namespace vitrail
