// Sums over rows spread over a thread pool: each chunk of rows gives a partial sum in scratch, and the
// partial sums are added in their order, so the result does not depend on which thread computed which. Knows
// raw pointers, not ops.
#pragma once

#include "backend/cpu/context.h"

namespace vitrail::cpu {

inline constexpr int64_t kSumRows = 128;  // rows of one partial sum

// out[width] (+)= the sum of `rows` partial sums, which is also left in the first of them.
void add_partials(const CpuContext& context, float* partials, int64_t stride, int64_t rows, int64_t width,
                  float* out, bool add);

// out[width] (+)= sum over rows of x, or of x * y when y is not null. `stride` is the number of elements
// between rows.
struct RowSumArgs {
  const float *x = nullptr, *y = nullptr;
  int64_t stride = 0, rows = 0, width = 0;
  float* out = nullptr;
  bool add = false;
};

ScratchNeed row_sum_scratch(int64_t rows, int64_t width);
void parallel_row_sum(const CpuContext& context, const RowSumArgs& args);

// y[b, width] = mean over tokens of x[b, tokens, width].
void parallel_mean_tokens(const CpuContext& context, const float* x, int64_t batch, int64_t image_stride,
                          int64_t tokens, int64_t width, float* y);

}  // namespace vitrail::cpu
