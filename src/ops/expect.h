// Checks of an op's inputs while shapes are inferred; a failure names the op, what it expected and found.
#pragma once

#include "graph/op.h"

namespace vitrail {

void expect_inputs(const Op& op, DescSpan ins, size_t count);
void expect_same(const Op& op, const TensorDesc& a, const TensorDesc& b);
// Requires that `small`'s dims are the last dims of `big`, in order, with the same extents.
void expect_suffix(const Op& op, const Shape& big, const Shape& small);
void expect_dim(const Op& op, const Shape& shape, char name);
// Requires that the last dim of `shape` has this name.
void expect_last(const Op& op, const Shape& shape, char name);
// Requires that the last dim of `shape` is one that norms run over and `weight` its last dims.
void expect_normed(const Op& op, const Shape& shape, const Shape& weight);

}  // namespace vitrail
