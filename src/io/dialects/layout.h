// Describes how a tensor in a file is laid out, in the letters of the parameter's named dims: "PQCD" is a
// conv kernel stored HWIO, "(HE)D" a matrix whose rows run over heads and then their elements, '1' a dim of
// extent one, 'L' the leading block dim of a stacked tensor. Knows no names and no files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/shape.h"

namespace vitrail {

// Splits "(THE)D" into {"THE", "D"}.
std::vector<std::string> layout_groups(std::string_view layout);

// Returns the file's shape of a parameter with shape `canonical` under `layout`.
std::vector<int64_t> stored_shape(std::string_view layout, const Shape& param);

// Copies a stored tensor into its place in the parameter, or back. A layout without T holds only index
// `part` of the parameter's T dim; otherwise both hold the same elements.
void from_stored(std::string_view layout, const Shape& canonical, int part, std::span<const float> stored,
                 std::span<float> param);
void to_stored(std::string_view layout, const Shape& canonical, int part, std::span<const float> param,
               std::span<float> stored);

// Returns whether the two orders are the same, so that no copy is needed.
bool same_order(std::string_view layout, const Shape& canonical);

}  // namespace vitrail
