// Hyperbolic tangent, elementwise: after pre_logits.
#pragma once

#include "graph/op.h"

namespace vitrail {

class TanhOp : public Op {
 public:
  std::string_view kind() const override { return "tanh"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  int in_place_input() const override { return 0; }
};

}  // namespace vitrail
