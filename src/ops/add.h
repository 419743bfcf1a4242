// Elementwise sum of two values of one shape, in the wider of their types: the residual connection.
#pragma once

#include "graph/op.h"

namespace vitrail {

class AddOp : public Op {
 public:
  static constexpr std::string_view kKind = "add";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"", true}; }
  int in_place_input() const override { return 0; }
};

}  // namespace vitrail
