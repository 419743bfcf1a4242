// The linear by a library's sgemm.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/onednn.h"

namespace vitrail::cpu {
namespace {

// The factor by which tiles are wider than those of our own kernels, so that the library's own packing pays
// off.
constexpr int64_t kWideTiles = 4;

Tiling library_tiling(const IsaKernels& isa, int64_t m, int64_t n) {
  Tiling tiling(isa, m, n);
  tiling.cols *= kWideTiles;
  tiling.col_blocks = ceil_div(n, tiling.cols);
  return tiling;
}

}  // namespace

ScratchNeed library_linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool norm) {
  const Tiling tiling = library_tiling(isa, m, n);
  return {norm ? padded_bytes(m * k) : 0, padded_bytes(tiling.rows * tiling.cols)};
}

void parallel_library_linear(const CpuContext& context, const GemmLibrary& library, const LinearArgs& args,
                             const float* w) {
  if (!library.sgemm)
    throw Error(ErrorKind::kDevice, library.missing, "install the library or use packed weights");
  const Scratch scratch(
      context, library_linear_scratch(context.isa, args.m, args.n, args.k, args.norm.gamma != nullptr));
  const Rows a = rows_of(context, args, scratch.shared());
  const Tiling tiling = library_tiling(context.isa, args.m, args.n);
  spread(context, context.parallel.rows, tiling.tasks(), [&](int64_t task, int worker) {
    const Place p(tiling, task, args.m, args.n);
    float* sums = scratch.of(worker);
    const int64_t cols = p.col_end - p.col_begin;
    library.sgemm(p.rows, cols, args.k, a.data + p.row * a.stride, a.stride, w + p.col_begin * args.k, sums);
    GemmTile tile;
    tile.c = args.c + p.row * args.ldc;
    tile.ldc = args.ldc;
    tile.rows = p.rows;
    tile.n = args.n;
    tile.k = args.k;
    tile.col_begin = p.col_begin;
    tile.col_end = p.col_end;
    tile.epilogue = at_row(args.epilogue, p.row);
    context.isa.finish_tile(tile, sums, cols);
  });
}

}  // namespace vitrail::cpu
