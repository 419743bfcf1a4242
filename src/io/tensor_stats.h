// Statistics of a tensor's values: extremes, mean, and how many are not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace vitrail {

struct TensorStats {
  double min = 0, max = 0, mean = 0;  // of the finite elements
  int64_t finite = 0, nan = 0, inf = 0;
};

// Accumulates the statistics of a tensor from pieces of whole elements.
class StatsScan {
 public:
  explicit StatsScan(DType dtype) : dtype_(dtype) {}
  void add(std::span<const std::byte> bytes);
  TensorStats result() const;

 private:
  DType dtype_;
  TensorStats stats_;
  double sum_ = 0;
};

}  // namespace vitrail
