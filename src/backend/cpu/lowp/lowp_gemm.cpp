#include "backend/cpu/lowp/lowp_gemm.h"

#include <algorithm>

#include "backend/cpu/tiles.h"

namespace vitrail::cpu {

namespace {

// The number of rows that one task prepares: whole row steps, within which rows may be stored in any order.
int64_t prepared_rows(const LowpKernels& kernels, int64_t k) {
  return std::max<int64_t>(1, kElemsPerTask / k / kernels.row_step) * kernels.row_step;
}

size_t rows_bytes(const LowpKernels& kernels, int64_t m, int64_t k) {
  return static_cast<size_t>(round_up(round_up(m, kernels.row_step) * kernels.row_bytes(k), 64));
}

// Rounds all rows into `out`, after the layernorm where the GEMM has one, block by block through a worker's
// scratch.
void prepare(const CpuContext& context, const LowpKernels& kernels, const LinearArgs& args,
             const Scratch& scratch, std::byte* out, float* scales) {
  const int64_t block = prepared_rows(kernels, args.k), bytes = kernels.row_bytes(args.k);
  spread(context, context.parallel.rows, ceil_div(args.m, block), [&](int64_t task, int worker) {
    const int64_t row = task * block, rows = std::min(block, args.m - row);
    const float* x = args.a + row * args.lda;
    int64_t stride = args.lda;
    if (args.norm.gamma) {
      float* normed = scratch.of(worker);
      context.isa.layernorm_rows(
          {x, stride, normed, args.k, rows, args.k, args.norm.gamma, args.norm.beta, args.norm.eps});
      x = normed;
      stride = args.k;
    }
    kernels.prepare_rows(x, stride, rows, args.k, out + row * bytes, scales + row);
  });
}

}  // namespace

void parallel_lowp_pack(const CpuContext& context, const LowpKernels& kernels, const float* w, int64_t n,
                        int64_t k, std::byte* packed) {
  const int64_t columns = panels_per_task(kernels.cols) * kernels.cols;
  spread(context, context.parallel.rows, ceil_div(n, columns), [&](int64_t task, int) {
    const int64_t first = task * columns;
    kernels.pack(w, n, first, std::min(columns, n - first), k, packed);
  });
}

ScratchNeed lowp_linear_scratch(const LowpKernels& kernels, int64_t m, int64_t n, int64_t k, bool norm) {
  const int64_t tile = kernels.tile_scratch_bytes(Tiling::most_rows(kernels.row_step, m),
                                                  Tiling::most_cols(kernels.cols, n), k);
  return {rows_bytes(kernels, m, k) + padded_bytes(m),
          std::max(static_cast<size_t>(round_up(tile, 64)),
                   norm ? padded_bytes(std::min(m, prepared_rows(kernels, k)) * k) : 0)};
}

void parallel_lowp_linear(const CpuContext& context, const LowpKernels& kernels, const LinearArgs& args,
                          const std::byte* packed) {
  const Scratch scratch(context,
                        lowp_linear_scratch(kernels, args.m, args.n, args.k, args.norm.gamma != nullptr));
  auto* rows = reinterpret_cast<std::byte*>(scratch.shared());
  auto* scales = reinterpret_cast<float*>(rows + rows_bytes(kernels, args.m, args.k));
  prepare(context, kernels, args, scratch, rows, scales);
  const Tiling tiling =
      Tiling::balanced(kernels.row_step, kernels.cols, context.pool.threads(), args.m, args.n, args.k);
  const int64_t bytes = kernels.row_bytes(args.k);
  spread(context, context.parallel.rows, tiling.tasks(), [&](int64_t task, int worker) {
    const Place p(tiling, task, args.m, args.n);
    kernels.tile({rows + p.row * bytes, bytes, scales + p.row, packed, args.c + p.row * args.ldc, args.ldc,
                  p.rows, args.n, args.k, p.col_begin, p.col_end, at_row(args.epilogue, p.row),
                  scratch.of(worker)});
  });
}

}  // namespace vitrail::cpu
