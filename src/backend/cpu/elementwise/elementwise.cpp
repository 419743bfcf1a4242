#include "backend/cpu/elementwise/elementwise.h"

#include "backend/cpu/tiles.h"

namespace vitrail::cpu {

void parallel_activate(const CpuContext& context, Activation act, const float* x, int64_t count, float* y) {
  spread_rows(context, count, 1,
              [&](int64_t first, int64_t part) { context.isa.activate(act, x + first, part, y + first); });
}

void parallel_add(const CpuContext& context, const float* a, const float* b, int64_t count, float* y) {
  spread_rows(context, count, 1,
              [&](int64_t first, int64_t part) { context.isa.add(a + first, b + first, part, y + first); });
}

void parallel_multiply(const CpuContext& context, const float* x, float factor, int64_t count, float* y) {
  spread_rows(context, count, 1,
              [&](int64_t first, int64_t part) { context.isa.multiply(x + first, factor, part, y + first); });
}

void parallel_add_row(const CpuContext& context, const float* x, const float* row, int64_t rows,
                      int64_t width, float* y) {
  spread_rows(context, rows, width, [&](int64_t first, int64_t count) {
    context.isa.add_row(x + first * width, row, count, width, y + first * width);
  });
}

void parallel_scale_row(const CpuContext& context, const float* x, const float* row, int64_t rows,
                        int64_t width, float* y) {
  spread_rows(context, rows, width, [&](int64_t first, int64_t count) {
    context.isa.scale_row(x + first * width, row, count, width, y + first * width);
  });
}

}  // namespace vitrail::cpu
