// Makes coarse nodes of neighbours: a product with the layernorm before it and the bias, gelu, scale and
// residual after it; a parameter's gradient with its sum; a product's gradient with that of the gelu before
// it. Runs late and alone makes fused nodes; a fused node keeps its members.
#pragma once

#include "graph/program.h"

namespace vitrail {

struct FuseOptions {
  bool norms = true;        // take the layernorm before a product into it
  bool few_passes = false;  // what a device of few, large launches wants: see join_row_sums, group_updates
};

Program fuse(const Program& program, const FuseOptions& options = {});

}  // namespace vitrail
