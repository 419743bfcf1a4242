// Makes coarse nodes of neighbours: a product with the layernorm before it and the bias, gelu, scale and
// residual after it, or the attention of a first token that asks alone; a parameter's gradient with its sum;
// a product's gradient with that of the gelu before it. Runs late and alone makes fused nodes; a fused node
// keeps its members.
#pragma once

#include "graph/program.h"
#include "graph/rewrite_traits.h"

namespace vitrail {

Program fuse(const Program& program, const RewriteTraits& options = {});

}  // namespace vitrail
