// Cuts a picture into patches and projects each: x [B C Y X], w [D C P Q] -> [B N D], patches row by row.
#pragma once

#include "graph/op.h"

namespace vitrail {

class PatchEmbedOp : public Op {
 public:
  std::string_view kind() const override { return "patch_embed"; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"YXPQ"}; }
  double flops(DescSpan ins, DescSpan outs) const override;
};

}  // namespace vitrail
