// x times a parameter over its last dim: LayerScale.
#pragma once

#include "graph/op.h"

namespace vitrail {

class ScaleOp : public Op {
 public:
  static constexpr std::string_view kKind = "scale";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {.whole = "", .linear_in = 0b11}; }
  int in_place_input() const override { return 0; }
};

// The gradient of the scale: the sum over rows of x times dy.
class ScaleDwOp : public Op {
 public:
  explicit ScaleDwOp(size_t kept_rank) : kept_rank_(kept_rank) {}

  static constexpr std::string_view kKind = "scale_dw";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {.whole = "", .linear_in = 0b11}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;

 private:
  size_t kept_rank_;
};

}  // namespace vitrail
