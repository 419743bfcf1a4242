// Elementwise functions spread over a thread pool, on contiguous values; outputs may be the inputs. Knows raw
// pointers, not ops.
#pragma once

#include "backend/cpu/context.h"

namespace vitrail::cpu {

void parallel_activate(const CpuContext& context, Activation act, const float* x, int64_t count, float* y);
void parallel_add(const CpuContext& context, const float* a, const float* b, int64_t count, float* y);
void parallel_multiply(const CpuContext& context, const float* x, float factor, int64_t count, float* y);
void parallel_add_row(const CpuContext& context, const float* x, const float* row, int64_t rows,
                      int64_t width, float* y);
void parallel_scale_row(const CpuContext& context, const float* x, const float* row, int64_t rows,
                        int64_t width, float* y);

}  // namespace vitrail::cpu
