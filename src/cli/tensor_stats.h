// What the numbers of a tensor look like: extremes, mean, and how many are not finite. Used by inspect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace vitrail::cli {

struct TensorStats {
  double min = 0, max = 0, mean = 0;  // of the finite elements
  int64_t finite = 0, nan = 0, inf = 0;
};

// `bytes` holds whole elements of `dtype`.
TensorStats scan_tensor(std::span<const std::byte> bytes, DType dtype);

}  // namespace vitrail::cli
