// Synthetic weights by rule: an architecture's parameters without a file. A value depends only on its
// parameter's canonical name and its index, scaled so that logits are of order 1. tools/golden_rule.py
// computes the same bits.
#pragma once

#include <span>

#include "models/vit_params.h"

namespace vitrail {

// Fills all elements of the parameter; `target` holds spec.shape.elems() floats. The name "input" gives
// image tensors, shape [B C Y X].
void fill_by_rule(const ParamSpec& spec, std::span<float> target);

}  // namespace vitrail
