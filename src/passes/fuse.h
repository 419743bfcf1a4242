// Makes coarse nodes of neighbours: a product with the layernorm before it and the bias, gelu, scale and
// residual after it, or the attention of a first token that asks alone; a parameter's gradient with its sum;
// a product's gradient with that of the gelu before it. Runs late and alone makes fused nodes; a fused node
// keeps its members.
#pragma once

#include "graph/program.h"

namespace vitrail {

struct FuseOptions {
  // Which products take the layernorm before them in; null: none.
  bool (*norms)(const Op& product) = [](const Op&) { return true; };
  // Which products take in the product, bias and gelu that make what they read; null: none.
  bool (*chains)(const Op& product) = nullptr;
  bool first_attention = false;  // whether the attention of one token takes in the product it reads (f32)
  bool few_passes = false;  // what a device of few, large launches wants: see join_row_sums, group_updates
};

Program fuse(const Program& program, const FuseOptions& options = {});

}  // namespace vitrail
