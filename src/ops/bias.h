// x plus a parameter that lacks x's leading dims: a bias [D], or positions [N D], added to [B N D].
#pragma once

#include "graph/op.h"

namespace vitrail {

class BiasOp : public Op {
 public:
  static constexpr std::string_view kKind = "bias";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {}; }
  int in_place_input() const override { return 0; }
};

}  // namespace vitrail
