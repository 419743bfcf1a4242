// Elementwise mean of two values: a distilled model's two heads.
#pragma once

#include "graph/op.h"

namespace vitrail {

class AverageOp : public Op {
 public:
  static constexpr std::string_view kKind = "average";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"", true}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 0; }
};

}  // namespace vitrail
