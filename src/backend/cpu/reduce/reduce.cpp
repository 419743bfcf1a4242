#include "backend/cpu/reduce/reduce.h"

#include <algorithm>

#include "backend/cpu/tiles.h"

namespace vitrail::cpu {
namespace {

constexpr int64_t kSumColumns = 512;  // columns of one task

}  // namespace

// out[width] (+)= the sum of `rows` partial sums, which is also left in the first of them.
void add_partials(const CpuContext& context, float* partials, int64_t stride, int64_t rows, int64_t width,
                  float* out, bool add) {
  spread(context, context.parallel.softmax, ceil_div(width, kSumColumns), [&](int64_t task, int) {
    const int64_t column = task * kSumColumns, columns = std::min(kSumColumns, width - column);
    float* part = partials + column;
    context.isa.sum_rows(part, nullptr, stride, rows, columns, add ? part : out + column);
    if (add) context.isa.add(out + column, part, columns, out + column);
  });
}

ScratchNeed row_sum_scratch(int64_t rows, int64_t width) {
  return {.shared_bytes = padded_bytes(ceil_div(rows, kSumRows) * width)};
}

void parallel_row_sum(const CpuContext& context, const RowSumArgs& args) {
  const Scratch scratch(context, row_sum_scratch(args.rows, args.width));
  const int64_t chunks = ceil_div(args.rows, kSumRows), blocks = ceil_div(args.width, kSumColumns);
  float* partials = scratch.shared();
  spread(context, context.parallel.softmax, chunks * blocks, [&](int64_t task, int) {
    const int64_t row = task / blocks * kSumRows, column = task % blocks * kSumColumns;
    const int64_t at = row * args.stride + column;
    context.isa.sum_rows(args.x + at, args.y ? args.y + at : nullptr, args.stride,
                         std::min(kSumRows, args.rows - row), std::min(kSumColumns, args.width - column),
                         partials + task / blocks * args.width + column);
  });
  add_partials(context, partials, args.width, chunks, args.width, args.out, args.add);
}

void parallel_mean_tokens(const CpuContext& context, const float* x, int64_t batch, int64_t image_stride,
                          int64_t tokens, int64_t width, float* y) {
  spread(context, context.parallel.softmax, batch, [&](int64_t b, int) {
    context.isa.mean_rows(x + b * image_stride, width, tokens, width, y + b * width);
  });
}

}  // namespace vitrail::cpu
