// Fuses neighbouring nodes: a GEMM with the layernorm before it and the epilogue (bias, gelu, scale,
// residual) after it; class-token attention with its qkv linear; a parameter's gradient with its sum; the
// gradient of a linear with that of the gelu before it. Runs late and alone makes fused nodes; a fused node
// keeps its members.
#pragma once

#include "graph/program.h"
#include "graph/rewrite_traits.h"

namespace vitrail {

Program fuse(const Program& program, const RewriteTraits& options = {});

}  // namespace vitrail
