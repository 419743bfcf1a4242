// One row of attention weights, shared by the reference loops of attention and of its gradient.
#pragma once

#include <vector>

#include "ops/attention.h"

namespace vitrail::ref {

// The softmax weights of query i of image b and head h.
void softmax_weights(const AttentionGeometry& g, const double* q, const double* k, int64_t b, int64_t h,
                     int64_t i, std::vector<double>& weights);

}  // namespace vitrail::ref
