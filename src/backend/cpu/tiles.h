// Decides how drivers cut GEMMs, rows and scratch into tasks and parts. Knows sizes alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/context.h"
#include "base/checked.h"
#include "base/error.h"

namespace vitrail::cpu {

inline size_t padded_bytes(int64_t floats) {
  return static_cast<size_t>(round_up(floats * 4, 64));
}

// Runs body(task, worker) on the pool, or all tasks on this thread.
template <typename Body>
void spread(const CpuContext& context, bool parallel, int64_t tasks, const Body& body) {
  if (parallel) return context.pool.run(tasks, body);
  for (int64_t task = 0; task < tasks; ++task) body(task, 0);
}

// The scratch of one call, cut into a shared part and one part per worker.
class Scratch {
 public:
  Scratch(const CpuContext& context, ScratchNeed need) : base_(context.scratch.data()), need_(need) {
    VT_CHECK(context.scratch.size() >= need.total(context.pool.threads()),
             "scratch holds %zu bytes, %zu are needed", context.scratch.size(),
             need.total(context.pool.threads()));
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

// The number of panels of a small task: four, or some 128 columns where panels are wide.
inline int64_t panels_per_task(int64_t columns) {
  return std::clamp<int64_t>(128 / columns, 1, 4);
}

// The blocks of rows x columns that a GEMM is cut into, one per task. No result depends on them.
struct Tiling {
  int64_t rows, cols, row_blocks, col_blocks;

  // These blocks are small enough that 197 tokens give work to 16 threads, and large enough that a weight
  // fetched from memory serves some 50 rows.
  Tiling(int64_t row_step, int64_t col_step, int64_t m, int64_t n) {
    const int64_t target = m > 400 ? 96 : 48;
    const int64_t wanted = std::max<int64_t>(1, (m + target / 2) / target);
    cut(m, n, round_up(ceil_div(m, wanted), row_step), panels_per_task(col_step) * col_step);
  }
  Tiling(const IsaKernels& isa, int64_t m, int64_t n) : Tiling(isa.mr, isa.nr, m, n) {}

  // The blocks with which `threads` threads should finish first, in whole steps of a micro-kernel.
  static Tiling balanced(int64_t row_step, int64_t col_step, int threads, int64_t m, int64_t n, int64_t k);
  // The largest tile that `balanced` may choose, for the size of a worker's scratch.
  static int64_t most_rows(int64_t row_step, int64_t m) {
    return std::min(round_up(m, row_step), kMostRows / row_step * row_step);
  }
  static int64_t most_cols(int64_t col_step, int64_t n) {
    return std::min(round_up(n, col_step), most_panels(col_step) * col_step);
  }

  int64_t tasks() const { return row_blocks * col_blocks; }

 private:
  static constexpr int64_t kMostRows = 108;
  static int64_t most_panels(int64_t col_step) { return std::min<int64_t>(8, 256 / col_step); }

  void cut(int64_t m, int64_t n, int64_t tile_rows, int64_t tile_cols) {
    rows = tile_rows;
    cols = tile_cols;
    row_blocks = ceil_div(m, rows);
    col_blocks = ceil_div(n, cols);
  }
};

// One tile. Consecutive tasks share the longer operand, rows of A or columns of the weight, so that it is
// read from memory once and the shorter one is read from cache again.
struct Place {
  int64_t row, rows, col_begin, col_end;

  Place(const Tiling& tiling, int64_t task, int64_t m, int64_t n) {
    const bool many_rows = m > n;
    row = (many_rows ? task / tiling.col_blocks : task % tiling.row_blocks) * tiling.rows;
    rows = std::min(tiling.rows, m - row);
    col_begin = (many_rows ? task % tiling.col_blocks : task / tiling.row_blocks) * tiling.cols;
    col_end = std::min(col_begin + tiling.cols, n);
  }
};

inline constexpr int64_t kElemsPerTask = 16384;  // row-wise ops: some microseconds of work

// Cuts `rows` rows of `width` into tasks of about kElemsPerTask values and calls body(first row, rows) for
// each.
template <typename Body>
void spread_rows(const CpuContext& context, int64_t rows, int64_t width, const Body& body) {
  const int64_t block = std::max<int64_t>(1, kElemsPerTask / std::max<int64_t>(1, width));
  spread(context, context.parallel.softmax, ceil_div(rows, block),
         [&](int64_t task, int) { body(task * block, std::min(block, rows - task * block)); });
}

// The same context without the first `bytes` bytes of its scratch.
inline CpuContext past(const CpuContext& context, size_t bytes) {
  return {context.pool, context.isa, context.parallel, context.scratch.subspan(bytes)};
}

}  // namespace vitrail::cpu
