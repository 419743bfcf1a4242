#include "backend/cpu/gemm/gemm.h"

#include <algorithm>
#include <cstring>

namespace vitrail::cpu {
namespace {

constexpr int64_t kPackRows = 64;  // rows of a plain weight that one task packs

int64_t patch_size(const PatchEmbedArgs& a) {
  return a.channels * a.patch_h * a.patch_w;
}

constexpr int64_t kRowsAhead = 8;  // rows to prefetch: the hardware prefetcher sees no stream in short rows

void fetch(const float* row, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(row + i);
}

// The first panel of the tile that this thread will probably compute next, `task`, to be prefetched; null
// where the panel is in cache already.
const float* next_panel(const Tiling& tiling, int64_t task, const Place& now, const LinearArgs& args) {
  if (task >= tiling.tasks()) return nullptr;
  const Place next(tiling, task, args.m, args.n);
  return next.col_begin == now.col_begin ? nullptr : args.packed + next.col_begin * args.k;
}

}  // namespace

void parallel_pack_weights(const CpuContext& context, const float* w, int64_t n, int64_t k, float* packed) {
  const int64_t rows = panels_per_task(context.isa.nr) * context.isa.nr;
  spread(context, context.parallel.rows, ceil_div(n, rows), [&](int64_t task, int) {
    const int64_t first = task * rows;
    context.isa.pack_weights(w + first * k, std::min(rows, n - first), k, packed + first * k);
  });
}

void parallel_pack_matrix(const CpuContext& context, const float* w, int64_t k, int64_t n, float* packed) {
  spread(context, context.parallel.rows, ceil_div(k, kPackRows), [&](int64_t task, int) {
    const int64_t row = task * kPackRows;
    context.isa.pack_matrix(w + row * n, n, std::min(kPackRows, k - row), n, k,
                            packed + row * context.isa.nr);
  });
}

ScratchNeed linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool norm) {
  return {
      norm ? padded_bytes(m * k) : 0,
      padded_bytes(isa.gemm_scratch_elems(Tiling::most_rows(isa.mr, m), Tiling::most_cols(isa.nr, n), k))};
}

void parallel_linear(const CpuContext& context, const LinearArgs& args) {
  const Scratch scratch(context,
                        linear_scratch(context.isa, args.m, args.n, args.k, args.norm.gamma != nullptr));
  const Rows a = rows_of(context, args, scratch.shared());
  const Tiling tiling =
      Tiling::balanced(context.isa.mr, context.isa.nr, context.pool.threads(), args.m, args.n, args.k);
  spread(context, context.parallel.rows, tiling.tasks(), [&](int64_t task, int worker) {
    const Place p(tiling, task, args.m, args.n);
    context.isa.gemm_tile({a.data + p.row * a.stride, a.stride, args.packed, args.c + p.row * args.ldc,
                           args.ldc, p.rows, args.n, args.k, p.col_begin, p.col_end,
                           at_row(args.epilogue, p.row), scratch.of(worker),
                           next_panel(tiling, task + context.pool.threads(), p, args)});
  });
}

void gather_patches(const PatchEmbedArgs& a, int64_t first, int64_t rows, float* out) {
  const int64_t across = a.width / a.patch_w, patches = patches_of(a);
  for (int64_t at = first; at < first + rows; ++at) {
    const int64_t patch = at % patches;
    const float* corner = a.image + at / patches * a.channels * a.height * a.width +
                          patch / across * a.patch_h * a.width + patch % across * a.patch_w;
    for (int64_t c = 0; c < a.channels; ++c) {
      for (int64_t y = 0; y < a.patch_h; ++y, out += a.patch_w) {
        const float* line = corner + (c * a.height + y) * a.width;
        std::memcpy(out, line, static_cast<size_t>(a.patch_w) * sizeof(float));
      }
    }
  }
}

ScratchNeed patch_embed_scratch(const IsaKernels& isa, const PatchEmbedArgs& args) {
  const int64_t k = patch_size(args), patches = patches_of(args);
  const Tiling tiling(isa, patches, args.n);
  return {0,
          padded_bytes(tiling.rows * k) + padded_bytes(isa.gemm_scratch_elems(tiling.rows, tiling.cols, k))};
}

void parallel_patch_embed(const CpuContext& context, const PatchEmbedArgs& args) {
  VT_CHECK(args.height >= args.patch_h && args.width >= args.patch_w, "the image holds no patch");
  const Scratch scratch(context, patch_embed_scratch(context.isa, args));
  const int64_t k = patch_size(args), patches = patches_of(args);
  const Tiling tiling(context.isa, patches, args.n);
  spread(context, context.parallel.rows, args.batch * tiling.tasks(), [&](int64_t task, int worker) {
    const int64_t b = task / tiling.tasks();
    const Place p(tiling, task % tiling.tasks(), patches, args.n);
    float* rows = scratch.of(worker);
    gather_patches(args, b * patches + p.row, p.rows, rows);
    context.isa.gemm_tile({rows, k, args.packed,
                           args.out + b * args.image_out_stride + p.row * args.out_stride, args.out_stride,
                           p.rows, args.n, k, p.col_begin, p.col_end, at_row(args.epilogue, p.row),
                           rows + padded_bytes(tiling.rows * k) / sizeof(float)});
  });
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

}  // namespace vitrail::cpu
