// The memory of a plan as rows that add up to its peak, and as a table: the same for inference, a training
// step and the message that refuses either.
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/buffer.h"

namespace vitrail {

using NamedBytes = std::vector<std::pair<std::string, size_t>>;
size_t sum_of(const NamedBytes& rows);

// Returns every category that takes any bytes, or is among `always`, and the overhead of alignment and gaps
// up to the peak.
NamedBytes memory_rows(const std::array<size_t, kCategoryCount>& by_category, size_t peak_bytes,
                       std::span<const Category> always = {});

std::string memory_table(const NamedBytes& rows, size_t peak_bytes, size_t indent = 0);

}  // namespace vitrail
