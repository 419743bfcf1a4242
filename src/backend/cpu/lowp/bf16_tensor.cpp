#include "backend/cpu/lowp/bf16_tensor.h"

#include <algorithm>

#include "backend/cpu/tiles.h"

namespace vitrail::cpu {

namespace {

constexpr int64_t kChunkRows = 2048;    // rows of x and dy packed at a time
constexpr int64_t kTransposeRows = 64;  // rows of dy one task transposes

Tiling bf16_tiling(const IsaKernels& isa, int64_t m, int64_t n) {
  return Tiling(isa.bf16_tensors.row_step, isa.bf16.cols, m, n);
}

size_t tile_bytes(const IsaKernels& isa, const Tiling& tiling, int64_t k) {
  return static_cast<size_t>(round_up(isa.bf16.tile_scratch_bytes(tiling.rows, tiling.cols, k), 64));
}

int64_t packed_bytes(const IsaKernels& isa, int64_t n, int64_t k) {
  return round_up(isa.bf16.packed_bytes(n, k), 64);
}

int64_t pack_columns(const IsaKernels& isa) {
  return panels_per_task(isa.bf16.cols) * isa.bf16.cols;
}

}  // namespace

ScratchNeed bf16_linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k) {
  return {static_cast<size_t>(packed_bytes(isa, n, k)), tile_bytes(isa, bf16_tiling(isa, m, n), k)};
}

void parallel_bf16_linear(const CpuContext& context, const Bf16LinearArgs& args) {
  const IsaKernels& isa = context.isa;
  const Scratch scratch(context, bf16_linear_scratch(isa, args.m, args.n, args.k));
  auto* packed = reinterpret_cast<std::byte*>(scratch.shared());
  const int64_t columns = pack_columns(isa);
  const auto pack = args.w_by_inputs ? isa.bf16_tensors.pack_matrix : isa.bf16_tensors.pack_rows;
  spread(context, context.parallel.rows, ceil_div(args.n, columns), [&](int64_t task, int) {
    const int64_t first = task * columns;
    pack(args.w, args.n, first, std::min(columns, args.n - first), args.k, packed);
  });
  const Tiling tiling = bf16_tiling(isa, args.m, args.n);
  spread(context, context.parallel.rows, tiling.tasks(), [&](int64_t task, int worker) {
    const Place p(tiling, task, args.m, args.n);
    const int64_t to = p.row * args.n;
    Bf16TensorTile tile{
        .gemm = {.a = reinterpret_cast<const std::byte*>(args.a + p.row * args.k),
                 .row_bytes = args.k * 2,
                 .packed = packed,
                 .c = args.wide_out ? args.wide_out + to : nullptr,
                 .ldc = args.n,
                 .rows = p.rows,
                 .n = args.n,
                 .k = args.k,
                 .col_begin = p.col_begin,
                 .col_end = p.col_end,
                 .epilogue =
                     at_row({.bias = args.bias, .residual = args.residual, .residual_stride = args.n}, p.row),
                 .scratch = scratch.of(worker)},
        .out = args.out ? args.out + to : nullptr};
    isa.bf16_tensors.tile(tile);
  });
}

namespace {

// The scratch layout: one chunk of x as panels, the same chunk of dy transposed, and partial sums that are
// yet to be added.
struct Bf16Parts {
  int64_t chunk, dy_stride;  // rows; elements between rows of the transposed dy
  int64_t panels, dy, sums;  // bytes

  Bf16Parts(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool add) {
    chunk = round_up(ceil_div(m, ceil_div(m, kChunkRows)), kTransposeRows);
    dy_stride = chunk + kBf16Depth;  // rows a power of two apart would share few cache sets
    panels = packed_bytes(isa, k, chunk);
    dy = round_up(n * dy_stride * 2, 64);
    sums = add ? round_up(n * k * 4, 64) : 0;
  }
};

// Packs rows [first, first + depth) of x and dy into the shared scratch.
void pack_chunk(const CpuContext& context, const Bf16WeightGradArgs& args, const Bf16Parts& parts,
                int64_t first, int64_t depth, std::byte* panels, uint16_t* dy) {
  const Bf16TensorKernels& kernels = context.isa.bf16_tensors;
  const int64_t columns = pack_columns(context.isa), packs = ceil_div(args.k, columns),
                transposes = ceil_div(depth, kTransposeRows);
  spread(context, context.parallel.rows, packs + transposes, [&](int64_t task, int) {
    if (task < packs) {
      const int64_t column = task * columns;
      return kernels.pack_matrix(args.x + first * args.k, args.k, column, std::min(columns, args.k - column),
                                 depth, panels);
    }
    const int64_t row = (task - packs) * kTransposeRows;
    kernels.transpose(args.dy + (first + row) * args.n, args.n, std::min(kTransposeRows, depth - row), args.n,
                      dy + row, parts.dy_stride);
  });
}

}  // namespace

ScratchNeed bf16_weight_grad_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool add) {
  const Bf16Parts parts(isa, m, n, k, add);
  return {static_cast<size_t>(parts.panels + parts.dy + parts.sums),
          tile_bytes(isa, bf16_tiling(isa, n, k), parts.chunk)};
}

void parallel_bf16_weight_grad(const CpuContext& context, const Bf16WeightGradArgs& args) {
  const IsaKernels& isa = context.isa;
  const Scratch scratch(context, bf16_weight_grad_scratch(isa, args.m, args.n, args.k, args.add));
  const Bf16Parts parts(isa, args.m, args.n, args.k, args.add);
  auto* panels = reinterpret_cast<std::byte*>(scratch.shared());
  auto* dy = reinterpret_cast<uint16_t*>(panels + parts.panels);
  auto* sums = reinterpret_cast<float*>(panels + parts.panels + parts.dy);
  float* c = args.add ? sums : args.dw;
  const Tiling tiling = bf16_tiling(isa, args.n, args.k);
  for (int64_t first = 0; first < args.m; first += parts.chunk) {
    const int64_t depth = std::min(parts.chunk, args.m - first);
    const bool last = first + depth == args.m;
    pack_chunk(context, args, parts, first, depth, panels, dy);
    spread(context, context.parallel.rows, tiling.tasks(), [&](int64_t task, int worker) {
      const Place p(tiling, task, args.n, args.k);
      float* to = c + p.row * args.k;
      isa.bf16_tensors.wide_tile(
          {.a = reinterpret_cast<const std::byte*>(dy + p.row * parts.dy_stride),
           .row_bytes = parts.dy_stride * 2,
           .packed = panels,
           .c = to,
           .ldc = args.k,
           .rows = p.rows,
           .n = args.k,
           .k = depth,
           .col_begin = p.col_begin,
           .col_end = p.col_end,
           .epilogue = {.residual = first > 0 ? to : nullptr, .residual_stride = args.k},
           .scratch = scratch.of(worker)});
      if (!last || !args.add) return;
      for (int64_t r = p.row; r < p.row + p.rows; ++r) {
        float* dw = args.dw + r * args.k + p.col_begin;
        isa.add(dw, sums + r * args.k + p.col_begin, p.col_end - p.col_begin, dw);
      }
    });
  }
}

}  // namespace vitrail::cpu
