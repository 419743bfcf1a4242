// The table of the vector functions that sum over rows at one instruction set. isa/reduce.cpp has the bodies
// and fills the table.
#pragma once

#include <cstdint>

namespace vitrail::cpu {

struct ReduceTable {
  // y[width] = mean over `rows` rows of x.
  void (*mean_rows)(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* y);
  // out[width] = sum over `rows` rows of x, or of x * y when y is not null; out may be row 0 of x.
  void (*sum_rows)(const float* x, const float* y, int64_t stride, int64_t rows, int64_t width, float* out);
};

}  // namespace vitrail::cpu
