#include "backend/cpu/blas.h"

#include <dlfcn.h>

#include "backend/cpu/tiles.h"

namespace vitrail {
namespace {

using namespace cpu_tiles;

// The C interface of BLAS; dimensions are 32-bit in the builds distributions ship.
using SgemmFn = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                         const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
using SetThreadsFn = void (*)(int);
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

// Column blocks wide enough for OpenBLAS to repay its own packing.
constexpr int64_t kWideTiles = 4;

struct Library {
  SgemmFn sgemm = nullptr;
  std::string missing;
};

Library open_library() {
  void* handle = nullptr;
  for (const char* name : {"libopenblas.so.0", "libopenblas.so"})
    if (!handle) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return {nullptr, "OpenBLAS is not installed (libopenblas.so.0 was not found)"};
  Library library{reinterpret_cast<SgemmFn>(dlsym(handle, "cblas_sgemm")), {}};
  const auto set_threads = reinterpret_cast<SetThreadsFn>(dlsym(handle, "openblas_set_num_threads"));
  if (!library.sgemm || !set_threads) return {nullptr, "libopenblas.so.0 lacks cblas_sgemm"};
  set_threads(1);  // a tile is one thread's work, and a fixed split keeps results repeatable
  return library;
}

const Library& library() {
  static const Library kLibrary = open_library();
  return kLibrary;
}

Tiling blas_tiling(const IsaKernels& isa, int64_t m, int64_t n) {
  Tiling tiling(isa, m, n);
  tiling.cols *= kWideTiles;
  tiling.col_blocks = ceil_div(n, tiling.cols);
  return tiling;
}

}  // namespace

const std::string& blas_missing_reason() {
  return library().missing;
}

ScratchNeed blas_linear_scratch(const IsaKernels& isa, int64_t m, int64_t n, int64_t k, bool norm) {
  const Tiling tiling = blas_tiling(isa, m, n);
  return {norm ? padded_bytes(m * k) : 0, padded_bytes(tiling.rows * tiling.cols)};
}

void parallel_blas_linear(const CpuLane& lane, const LinearArgs& args, const float* w) {
  const Library& blas = library();
  if (!blas.sgemm) throw Error(ErrorKind::kDevice, blas.missing, "install OpenBLAS or use packed weights");
  const Scratch scratch(lane,
                        blas_linear_scratch(lane.isa, args.m, args.n, args.k, args.norm.gamma != nullptr));
  const Rows a = rows_of(lane, args, scratch.shared());
  const Tiling tiling = blas_tiling(lane.isa, args.m, args.n);
  spread(lane, lane.parallel.rows, tiling.tasks(), [&](int64_t task, int worker) {
    const Place p(tiling, task, args.m, args.n);
    float* sums = scratch.of(worker);
    const int cols = static_cast<int>(p.col_end - p.col_begin), k = static_cast<int>(args.k);
    blas.sgemm(kRowMajor, kNoTrans, kTrans, static_cast<int>(p.rows), cols, k, 1.0f,
               a.data + p.row * a.stride, static_cast<int>(a.stride), w + p.col_begin * args.k, k, 0.0f, sums,
               cols);
    GemmTile tile;
    tile.c = args.c + p.row * args.ldc, tile.ldc = args.ldc;
    tile.rows = p.rows, tile.n = args.n, tile.k = args.k;
    tile.col_begin = p.col_begin, tile.col_end = p.col_end;
    tile.epilogue = at_row(args.epilogue, p.row);
    lane.isa.finish_tile(tile, sums, cols);
  });
}

}  // namespace vitrail
