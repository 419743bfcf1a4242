#include "backend/cpu/gemm.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/tiles.h"

namespace vitrail {
namespace {

using namespace cpu_tiles;

constexpr int64_t kPackRows = 64;  // of a plain weight, by one task

int64_t patch_size(const PatchEmbedArgs& a) {
  return a.channels * a.patch_h * a.patch_w;
}

constexpr int64_t kMostQueries = 288;  // of a task

// Query rows one task takes: a head is cut where that lets `threads` be done earlier, though each part packs
// the head's K and V anew, which costs about as much as kPackQueries query rows.
int64_t query_block(int threads, int64_t heads, int64_t queries) {
  constexpr int64_t kPackQueries = 12, kLeastQueries = 24;
  int64_t best = 0, least = 0;
  for (int64_t parts = ceil_div(queries, kMostQueries); parts <= queries; ++parts) {
    const int64_t block = ceil_div(queries, parts);
    const int64_t time = ceil_div(heads * parts, threads) * (block + kPackQueries);
    if (best == 0 || time < least) best = block, least = time;
    if (block <= kLeastQueries) break;
  }
  return best;
}

// Threads take tasks in turn, so a thread's next one is about `task`: its first panel, unless that is at
// hand.
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

ScratchNeed attention_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size) {
  return {0, padded_bytes(isa.attention_scratch_elems(std::min(queries, kMostQueries), keys, head_size))};
}

void parallel_attention(const CpuContext& context, const AttentionArgs& args) {
  const Scratch scratch(context, attention_scratch(context.isa, args.queries, args.keys, args.head_size));
  const int64_t block = query_block(context.pool.threads(), args.batch * args.heads, args.queries),
                blocks = ceil_div(args.queries, block);
  spread(context, context.parallel.heads, args.batch * args.heads * blocks, [&](int64_t task, int worker) {
    const int64_t query = task % blocks * block, head = task / blocks % args.heads,
                  b = task / blocks / args.heads;
    const auto offset = [&](const AttentionView& s, int64_t token) {
      return b * s.image + token * s.token + head * s.head;
    };
    context.isa.attention_tile(
        {args.q + offset(args.q_strides, query), args.k + offset(args.k_strides, 0),
         args.v + offset(args.v_strides, 0), args.q_strides.token, args.k_strides.token, args.v_strides.token,
         args.out + offset(args.out_strides, query), args.out_strides.token,
         std::min(block, args.queries - query), args.keys, args.head_size, args.scale, scratch.of(worker)});
  });
}

void parallel_layernorm(const CpuContext& context, const NormRows& args) {
  spread_rows(context, args.rows, args.width, [&](int64_t row, int64_t rows) {
    NormRows part = args;
    part.x += row * args.x_stride;
    part.y += row * args.y_stride;
    part.rows = rows;
    context.isa.layernorm_rows(part);
  });
}

void parallel_softmax(const CpuContext& context, const float* x, int64_t rows, int64_t width, float* y) {
  spread_rows(context, rows, width, [&](int64_t row, int64_t count) {
    context.isa.softmax_rows(x + row * width, count, width, y + row * width);
  });
}

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

void parallel_mean_tokens(const CpuContext& context, const float* x, int64_t batch, int64_t image_stride,
                          int64_t tokens, int64_t width, float* y) {
  spread(context, context.parallel.softmax, batch, [&](int64_t b, int) {
    context.isa.mean_rows(x + b * image_stride, width, tokens, width, y + b * width);
  });
}

}  // namespace vitrail
