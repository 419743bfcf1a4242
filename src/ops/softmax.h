// Softmax over the classes K, the last dim.
#pragma once

#include "graph/op.h"

namespace vitrail {

class SoftmaxOp : public Op {
 public:
  std::string_view kind() const override { return "softmax"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"K"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
  int in_place_input() const override { return 0; }
};

}  // namespace vitrail
