// How far a kernel's result may lie from the same sum in f64: one place, by dtype and reduction length.
// `magnitude` is the sum of the absolute values that were added up.
#pragma once

#include <cmath>
#include <cstdint>

#include "tensor/dtype.h"

namespace vitrail::testing {

// Half a unit in the last place of 1.
inline double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return std::ldexp(1.0, -11);
    case DType::kBF16:
      return std::ldexp(1.0, -8);
    default:
      return std::ldexp(1.0, -24);
  }
}

// Rounding errors of a sum grow like a random walk; 4 covers the operations around it.
inline double sum_tolerance(DType dtype, int64_t terms, double magnitude) {
  return unit_roundoff(dtype) * (4 + 2 * std::sqrt(static_cast<double>(terms))) * magnitude;
}

}  // namespace vitrail::testing
