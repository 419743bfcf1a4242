// What the kernels of a backend can take in beside their own op, and how many launches it bears. A backend
// says it, the pass pipeline goes by it.
#pragma once

#include <functional>

#include "graph/op.h"

namespace vitrail {

using ProductRule = bool (*)(const Op& product);

struct RewriteTraits {
  // Which products take the layernorm before them in; null: none.
  ProductRule norms = [](const Op&) { return true; };
  // Which products take in the product, bias and gelu that make what they read; null: none.
  ProductRule chains = nullptr;
  bool first_attention = false;  // whether the attention of one token takes in the product it reads (f32)
  bool few_launches = false;     // whether work is joined until few, large launches are left
  // Which kinds of updates have a kernel for many parameters at once; null: none.
  std::function<bool(std::string_view kind)> groups = {};
};

}  // namespace vitrail
