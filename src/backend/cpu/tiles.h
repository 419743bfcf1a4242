// How drivers cut a product into tasks and scratch into parts. Used by gemm.cpp and blas.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/gemm.h"
#include "base/error.h"

namespace vitrail::cpu_tiles {

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
inline int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}
inline size_t padded_bytes(int64_t floats) {
  return static_cast<size_t>(round_up(floats * 4, 64));
}

// Runs body(task, worker) over the pool, or all on this thread.
template <typename Body>
void spread(const CpuLane& lane, bool parallel, int64_t tasks, const Body& body) {
  if (parallel) return lane.pool.run(tasks, body);
  for (int64_t task = 0; task < tasks; ++task) body(task, 0);
}

// The scratch of one call, cut into a shared part and one part per worker.
class Scratch {
 public:
  Scratch(const CpuLane& lane, ScratchNeed need) : base_(lane.scratch.data()), need_(need) {
    VT_CHECK(lane.scratch.size() >= need.total(lane.pool.threads()),
             "scratch holds %zu bytes, %zu are needed", lane.scratch.size(), need.total(lane.pool.threads()));
    VT_CHECK(reinterpret_cast<uintptr_t>(base_) % 64 == 0, "scratch is not aligned to 64 bytes");
  }
  float* shared() const { return reinterpret_cast<float*>(base_); }
  float* of(int worker) const {
    return reinterpret_cast<float*>(base_ + need_.shared_bytes +
                                    need_.worker_bytes * static_cast<size_t>(worker));
  }

 private:
  std::byte* base_;
  ScratchNeed need_;
};

inline constexpr int64_t kPanelsPerTask = 4;

// Blocks of rows x columns of a product. Small enough that 197 tokens feed 16 threads, large enough that
// a weight fetched from memory serves some 50 rows; within that, speed hardly depends on the choice.
struct Tiling {
  int64_t rows, cols, row_blocks, col_blocks;

  Tiling(const IsaKernels& isa, int64_t m, int64_t n) {
    const int64_t target = m > 400 ? 96 : 48;
    const int64_t wanted = std::max<int64_t>(1, (m + target / 2) / target);
    rows = round_up(ceil_div(m, wanted), isa.mr);
    cols = kPanelsPerTask * isa.nr;
    row_blocks = ceil_div(m, rows);
    col_blocks = ceil_div(n, cols);
  }
  int64_t tasks() const { return row_blocks * col_blocks; }
};

// One tile; tasks that follow each other share their columns, so weights are read while still in cache.
struct Place {
  int64_t row, rows, col_begin, col_end;

  Place(const Tiling& tiling, int64_t task, int64_t m, int64_t n) {
    row = task % tiling.row_blocks * tiling.rows;
    rows = std::min(tiling.rows, m - row);
    col_begin = task / tiling.row_blocks * tiling.cols;
    col_end = std::min(col_begin + tiling.cols, n);
  }
};

inline Epilogue at_row(Epilogue epilogue, int64_t row) {
  if (epilogue.residual) epilogue.residual += row * epilogue.residual_stride;
  return epilogue;
}

// The rows of A to multiply: in place, or normalised into the shared scratch. They are normalised once,
// before the tiles: within them it would be repeated for every block of columns, which costs more than
// one pass through the cache.
struct Rows {
  const float* data;
  int64_t stride;
};
inline Rows rows_of(const CpuLane& lane, const LinearArgs& args, float* shared) {
  if (!args.norm.gamma) return {args.a, args.lda};
  parallel_layernorm(lane, {args.a, args.lda, shared, args.k, args.m, args.k, args.norm.gamma, args.norm.beta,
                            args.norm.eps});
  return {shared, args.k};
}

}  // namespace vitrail::cpu_tiles
