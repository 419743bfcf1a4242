// The gradient of a linear's weights, dw = dy' x, in chunks of rows that stay in cache; that of patches, too.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/tiles.h"

namespace vitrail::cpu {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;  // of x and dy packed at a time: they stay in cache for all tiles
constexpr int64_t kGradPackRows = 64;     // rows one task packs
constexpr int64_t kEnoughTasks = 48;      // tasks of a GEMM: several for every thread

// The scratch layout: one chunk of rows of x as panels and of dy as strips, and partial sums that are yet to
// be added.
struct Parts {
  int64_t chunk, panels, strips, sums;  // the last three in floats

  Parts(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool add) {
    const int64_t width = round_up(k, isa.nr) + round_up(n, isa.mr);
    const int64_t most = std::max(kGradPackRows, kChunkBytes / static_cast<int64_t>(sizeof(float)) / width);
    chunk = ceil_div(m, ceil_div(m, most));
    panels = round_up(round_up(k, isa.nr) * chunk, 16);
    strips = round_up(round_up(n, isa.mr) * chunk, 16);
    sums = add ? n * k : 0;
  }
};

// The tiles of dw: tall ones read the packed rows less often, low ones give work to more threads.
struct WeightTiles {
  int64_t rows, cols, down, across;

  WeightTiles(const IsaKernels& isa, int64_t n, int64_t k)
      : rows(round_up(96, isa.mr)), cols(panels_per_task(isa.nr) * isa.nr) {
    across = ceil_div(k, cols);
    while (ceil_div(n, rows) * across < kEnoughTasks && rows > 2 * isa.mr) rows = round_up(rows / 2, isa.mr);
    down = ceil_div(n, rows);
  }
};

// Computes dw in chunks of rows; pack_x(first row, rows, depth of a panel, target, worker) packs a chunk of
// x.
template <typename PackX>
void weight_grad(const CpuContext& context, const Scratch& scratch, const WeightGradArgs& args,
                 const PackX& pack_x) {
  const auto& isa = context.isa;
  const Parts parts(isa, args.m, args.n, args.k, args.add);
  float *panels = scratch.shared(), *strips = panels + parts.panels, *sums = strips + parts.strips;
  float* c = args.add ? sums : args.dw;
  const WeightTiles tiles(isa, args.n, args.k);
  for (int64_t first = 0; first < args.m; first += parts.chunk) {
    const int64_t depth = std::min(parts.chunk, args.m - first);
    const bool last = first + depth == args.m;
    spread(context, context.parallel.rows, ceil_div(depth, kGradPackRows), [&](int64_t task, int worker) {
      const int64_t row = task * kGradPackRows, rows = std::min(kGradPackRows, depth - row);
      pack_x(first + row, rows, depth, panels + row * isa.nr, worker);
      isa.pack_strips(args.dy + (first + row) * args.n, args.n, rows, args.n, depth, strips + row * isa.mr);
    });
    spread(context, context.parallel.rows, tiles.down * tiles.across, [&](int64_t task, int) {
      const int64_t row = task % tiles.down * tiles.rows, column = task / tiles.down * tiles.cols;
      const int64_t rows = std::min(tiles.rows, args.n - row), cols = std::min(tiles.cols, args.k - column);
      const int64_t at = row * args.k + column;
      isa.row_gemm_tile(
          {strips + row * depth, panels + column * depth, depth, c + at, args.k, rows, cols, first > 0});
      if (!last || !args.add) return;
      for (int64_t r = 0; r < rows; ++r) {
        float* dw = args.dw + at + r * args.k;
        isa.add(dw, sums + at + r * args.k, cols, dw);
      }
    });
  }
}

struct PatchExtents {
  int64_t m, k;
  explicit PatchExtents(const PatchEmbedArgs& a)
      : m(a.batch * patches_of(a)), k(a.channels * a.patch_h * a.patch_w) {}
};

}  // namespace

ScratchNeed weight_grad_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool add) {
  const Parts parts(isa, m, n, k, add);
  return {.shared_bytes = padded_bytes(parts.panels + parts.strips + parts.sums)};
}

void parallel_weight_grad(const CpuContext& context, const WeightGradArgs& args) {
  const Scratch scratch(context, weight_grad_scratch(context.isa, args.m, args.n, args.k, args.add));
  weight_grad(context, scratch, args, [&](int64_t row, int64_t rows, int64_t depth, float* to, int) {
    context.isa.pack_panels(args.x + row * args.k, args.k, rows, args.k, depth, to);
  });
}

ScratchNeed patch_weight_grad_scratch(const IsaKernels& isa, const PatchEmbedArgs& patches, bool add) {
  const PatchExtents e(patches);
  ScratchNeed need = weight_grad_scratch(isa, e.m, patches.n, e.k, add);
  need.worker_bytes = padded_bytes(kGradPackRows * e.k);
  return need;
}

void parallel_patch_weight_grad(const CpuContext& context, const PatchEmbedArgs& patches, const float* dy,
                                float* dw, bool add) {
  const PatchExtents e(patches);
  const Scratch scratch(context, patch_weight_grad_scratch(context.isa, patches, add));
  const WeightGradArgs args{.x = nullptr, .dy = dy, .dw = dw, .m = e.m, .n = patches.n, .k = e.k, .add = add};
  weight_grad(context, scratch, args, [&](int64_t row, int64_t rows, int64_t depth, float* to, int worker) {
    float* gathered = scratch.of(worker);
    gather_patches(patches, row, rows, gathered);
    context.isa.pack_panels(gathered, e.k, rows, e.k, depth, to);
  });
}

}  // namespace vitrail::cpu
