// x times a parameter over its last dim: LayerScale.
#pragma once

#include "graph/op.h"

namespace vitrail {

class ScaleOp : public Op {
 public:
  std::string_view kind() const override { return "scale"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  int in_place_input() const override { return 0; }
};

}  // namespace vitrail
