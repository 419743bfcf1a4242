// Gradients that sum over rows: each chunk of rows gives a partial sum in scratch, and the partial sums are
// added in their order, so the result does not depend on who computed which.
#include <cstring>

#include "backend/cpu/grads.h"
#include "backend/cpu/tiles.h"

namespace vitrail {
namespace {

using namespace cpu_tiles;

constexpr int64_t kSumRows = 128;      // rows of one partial sum
constexpr int64_t kSumColumns = 512;   // columns one task takes
constexpr int64_t kNormElems = 16384;  // values of the rows whose parameter gradients form one partial sum

// out[width] (+)= the sum of `rows` partial sums, which is left in the first of them.
void add_partials(const CpuContext& context, float* partials, int64_t stride, int64_t rows, int64_t width,
                  float* out, bool add) {
  spread(context, context.parallel.softmax, ceil_div(width, kSumColumns), [&](int64_t task, int) {
    const int64_t column = task * kSumColumns, columns = std::min(kSumColumns, width - column);
    float* part = partials + column;
    context.isa.sum_rows(part, nullptr, stride, rows, columns, add ? part : out + column);
    if (add) context.isa.add(out + column, part, columns, out + column);
  });
}

constexpr int64_t kRowsAhead = 8;  // of a tile's short rows: the processor sees no stream in them

void fetch(const float* row, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(row + i);
}

int64_t norm_rows(int64_t width) {
  return std::max<int64_t>(1, kNormElems / width);
}

}  // namespace

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

void parallel_linear_activate_grad(const CpuContext& context, const LinearArgs& args, Activation act,
                                   const float* x) {
  const Scratch scratch(context, linear_scratch(context.isa, args.m, args.n, args.k, false));
  const Tiling tiling =
      Tiling::balanced(context.isa.mr, context.isa.nr, context.pool.threads(), args.m, args.n, args.k);
  spread(context, context.parallel.rows, tiling.tasks(), [&](int64_t task, int worker) {
    const Place p(tiling, task, args.m, args.n);
    const int64_t cols = p.col_end - p.col_begin;
    const float* tile_x = x + p.row * args.n + p.col_begin;
    float* c = args.c + p.row * args.ldc;
    for (int64_t r = 0; r < std::min(kRowsAhead, p.rows); ++r) fetch(tile_x + r * args.n, cols);
    context.isa.gemm_tile({.a = args.a + p.row * args.lda,
                           .lda = args.lda,
                           .packed = args.packed,
                           .c = c,
                           .ldc = args.ldc,
                           .rows = p.rows,
                           .n = args.n,
                           .k = args.k,
                           .col_begin = p.col_begin,
                           .col_end = p.col_end,
                           .epilogue = {},
                           .scratch = scratch.of(worker)});
    for (int64_t r = 0; r < p.rows; ++r) {
      if (r + kRowsAhead < p.rows) fetch(tile_x + (r + kRowsAhead) * args.n, cols);
      float* dx = c + r * args.ldc + p.col_begin;
      context.isa.activate_grad(act, tile_x + r * args.n, dx, cols, dx);
    }
  });
}

ScratchNeed layernorm_grad_scratch(int64_t rows, int64_t width, bool parameters) {
  if (!parameters) return {};
  return {.shared_bytes = padded_bytes(ceil_div(rows, norm_rows(width)) * 2 * width)};
}

void parallel_layernorm_grad(const CpuContext& context, const NormGradRows& args) {
  const bool parameters = args.dgamma != nullptr;
  const Scratch scratch(context, layernorm_grad_scratch(args.rows, args.width, parameters));
  const int64_t chunk = norm_rows(args.width), chunks = ceil_div(args.rows, chunk);
  float* partials = scratch.shared();
  spread(context, context.parallel.softmax, chunks, [&](int64_t task, int) {
    NormGradRows part = args;
    const int64_t at = task * chunk * args.stride;
    part.x += at, part.dy += at, part.dx += at;
    if (part.residual) part.residual += at;
    part.rows = std::min(chunk, args.rows - task * chunk);
    if (parameters) {
      part.dgamma = partials + task * 2 * args.width, part.dbeta = part.dgamma + args.width;
      std::memset(part.dgamma, 0, static_cast<size_t>(2 * args.width) * sizeof(float));
    }
    context.isa.layernorm_grad_rows(part);
  });
  if (!parameters) return;
  add_partials(context, partials, 2 * args.width, chunks, args.width, args.dgamma, false);
  add_partials(context, partials + args.width, 2 * args.width, chunks, args.width, args.dbeta, false);
}

ScratchNeed qk_norm_grad_scratch(int64_t tokens, int64_t head_size) {
  return {.shared_bytes = padded_bytes(ceil_div(tokens, kSumRows) * 4 * head_size)};
}

void parallel_qk_norm_grad(const CpuContext& context, const QkNormGradArgs& args) {
  const Scratch scratch(context, qk_norm_grad_scratch(args.tokens, args.head_size));
  const int64_t size = args.head_size, part = args.heads * size, chunks = ceil_div(args.tokens, kSumRows);
  float* partials = scratch.shared();
  const auto one_token = [&](int64_t token, float* sums) {
    for (int64_t t = 0; t < 2; ++t) {
      const int64_t at = (3 * token + t) * part;
      context.isa.layernorm_grad_rows({args.qkv + at, args.dy + at, args.dqkv + at, size, args.heads, size,
                                       args.gamma[t], args.eps, sums + 2 * t * size,
                                       sums + (2 * t + 1) * size});
    }
    const int64_t v = (3 * token + 2) * part;
    std::memcpy(args.dqkv + v, args.dy + v, static_cast<size_t>(part) * sizeof(float));
  };
  spread(context, context.parallel.softmax, chunks, [&](int64_t task, int) {
    float* sums = partials + task * 4 * size;
    std::memset(sums, 0, static_cast<size_t>(4 * size) * sizeof(float));
    const int64_t first = task * kSumRows, end = std::min(first + kSumRows, args.tokens);
    for (int64_t token = first; token < end; ++token) one_token(token, sums);
  });
  for (int64_t i = 0; i < 4; ++i)
    if (args.parameters[i])
      add_partials(context, partials + i * size, 4 * size, chunks, size, args.parameters[i], false);
}

}  // namespace vitrail
