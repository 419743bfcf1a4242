#include "backend/cpu/grads.h"
#include "backend/cpu/tiles.h"

namespace vitrail {
namespace {

using namespace cpu_tiles;

constexpr int64_t kChunkRows = 512;  // of x and dy packed at a time: some MB, in cache for all tiles
constexpr int64_t kPackRows = 64;    // rows one task packs

// One chunk of x as panels, of dy transposed, and the sums that wait to be added.
struct Parts {
  int64_t chunk, dy_stride, panels, dy, sums;  // the last three in floats

  Parts(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool add) {
    chunk = round_up(ceil_div(m, ceil_div(m, kChunkRows)), 16);
    dy_stride = chunk + 16;  // rows a power of two apart would meet in few cache sets
    panels = round_up(k, isa.nr) * chunk;
    dy = n * dy_stride;
    sums = add ? round_up(n * k, 16) : 0;
  }
};

// pack_x(first row, rows, depth of a panel, to, worker)
template <typename PackX>
void weight_grad(const CpuLane& lane, const Scratch& scratch, const WeightGradArgs& args,
                 const PackX& pack_x) {
  const auto& isa = lane.isa;
  const Parts parts(isa, args.m, args.n, args.k, args.add);
  float *panels = scratch.shared(), *dy = panels + parts.panels, *sums = dy + parts.dy;
  float* c = args.add ? sums : args.dw;
  const Tiling tiling(isa, args.n, args.k);
  for (int64_t first = 0; first < args.m; first += parts.chunk) {
    const int64_t depth = std::min(parts.chunk, args.m - first);
    const bool last = first + depth == args.m;
    spread(lane, lane.parallel.rows, ceil_div(depth, kPackRows), [&](int64_t task, int worker) {
      const int64_t row = task * kPackRows, rows = std::min(kPackRows, depth - row);
      pack_x(first + row, rows, depth, panels + row * isa.nr, worker);
      isa.transpose(args.dy + (first + row) * args.n, args.n, rows, args.n, dy + row, parts.dy_stride);
    });
    spread(lane, lane.parallel.rows, tiling.tasks(), [&](int64_t task, int worker) {
      const Place p(tiling, task, args.n, args.k);
      float* to = c + p.row * args.k;
      isa.gemm_tile({dy + p.row * parts.dy_stride,
                     parts.dy_stride,
                     panels,
                     to,
                     args.k,
                     p.rows,
                     args.k,
                     depth,
                     p.col_begin,
                     p.col_end,
                     {.residual = first > 0 ? to : nullptr, .residual_stride = args.k},
                     scratch.of(worker)});
      if (!last || !args.add) return;
      for (int64_t r = p.row; r < p.row + p.rows; ++r) {
        float* dw = args.dw + r * args.k + p.col_begin;
        isa.add(dw, sums + r * args.k + p.col_begin, p.col_end - p.col_begin, dw);
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
  const Tiling tiling(isa, n, k);
  return {padded_bytes(parts.panels + parts.dy + parts.sums),
          padded_bytes(isa.gemm_scratch_elems(tiling.rows, tiling.cols, parts.chunk))};
}

void parallel_weight_grad(const CpuLane& lane, const WeightGradArgs& args) {
  const Scratch scratch(lane, weight_grad_scratch(lane.isa, args.m, args.n, args.k, args.add));
  weight_grad(lane, scratch, args, [&](int64_t row, int64_t rows, int64_t depth, float* to, int) {
    lane.isa.pack_matrix(args.x + row * args.k, args.k, rows, args.k, depth, to);
  });
}

ScratchNeed patch_weight_grad_scratch(const IsaKernels& isa, const PatchEmbedArgs& patches, bool add) {
  const PatchExtents e(patches);
  ScratchNeed need = weight_grad_scratch(isa, e.m, patches.n, e.k, add);
  need.worker_bytes = std::max(need.worker_bytes, padded_bytes(kPackRows * e.k));
  return need;
}

void parallel_patch_weight_grad(const CpuLane& lane, const PatchEmbedArgs& patches, const float* dy,
                                float* dw, bool add) {
  const PatchExtents e(patches);
  const Scratch scratch(lane, patch_weight_grad_scratch(lane.isa, patches, add));
  const WeightGradArgs args{.x = nullptr, .dy = dy, .dw = dw, .m = e.m, .n = patches.n, .k = e.k, .add = add};
  weight_grad(lane, scratch, args, [&](int64_t row, int64_t rows, int64_t depth, float* to, int worker) {
    float* gathered = scratch.of(worker);
    gather_patches(patches, row, rows, gathered);
    lane.isa.pack_matrix(gathered, e.k, rows, e.k, depth, to);
  });
}

}  // namespace vitrail
