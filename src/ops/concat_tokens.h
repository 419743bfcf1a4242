// Puts learned tokens before the patches of every picture: prefixes [S D]..., then x [B N D] last among the
// inputs -> [B N+S.. D].
#pragma once

#include "graph/op.h"

namespace vitrail {

class ConcatTokensOp : public Op {
 public:
  std::string_view kind() const override { return "concat_tokens"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"NS"}; }
  double flops(DescSpan, DescSpan) const override { return 0; }
};

}  // namespace vitrail
