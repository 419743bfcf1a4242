// What the kernels of a backend take in beside their own op. A backend says it, the fuse pass does it.
#pragma once

#include "graph/op.h"

namespace vitrail {

using ProductRule = bool (*)(const Op& product);

struct FuseOptions {
  // Which products take the layernorm before them in; null: none.
  ProductRule norms = [](const Op&) { return true; };
  // Which products take in the product, bias and gelu that make what they read; null: none.
  ProductRule chains = nullptr;
  bool first_attention = false;  // whether the attention of one token takes in the product it reads (f32)
  bool few_passes = false;  // what a device of few, large launches wants: see join_row_sums, group_updates
};

}  // namespace vitrail
