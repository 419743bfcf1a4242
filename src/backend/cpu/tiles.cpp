#include "backend/cpu/tiles.h"

namespace vitrail::cpu {

namespace {

// Rough costs of tiles in multiply-add steps of the micro-kernel (one vector of one row), measured on Zen 3
// and Sapphire Rapids: starting a task, starting a micro-kernel, and fetching a row of A and a vector of a
// panel of the weight, both of which partly overlap with the arithmetic.
constexpr double kTaskSteps = 4000, kCallSteps = 100, kRowShare = 0.25, kVectorShare = 8;
// The number of tiles that are waited for at the end, since threads do not start and end together and a core
// may have other work. Smaller tiles cost little on an idle machine and save a tenth on a busy one.
constexpr double kTail = 1;

// A GEMM as calls of the micro-kernel, and the tiles it is cut into.
struct Cut {
  int64_t row_step, vectors;  // rows of a call, vectors of a panel
  int64_t calls, panels, k;
  int64_t row_blocks = 1, col_blocks = 1;

  double steps() const {
    const auto depth = static_cast<double>(k);
    const double work =
        static_cast<double>(calls * panels) * (static_cast<double>(vectors * row_step) * depth + kCallSteps);
    const double fetch = depth * (kRowShare * static_cast<double>(calls * row_step * col_blocks) +
                                  kVectorShare * static_cast<double>(vectors * panels * row_blocks));
    return work + fetch + kTaskSteps * static_cast<double>(row_blocks * col_blocks);
  }
  double time(int threads) const {
    const int64_t tasks = row_blocks * col_blocks;
    return (static_cast<double>(ceil_div(tasks, threads)) + kTail) * steps() / static_cast<double>(tasks);
  }
};

}  // namespace

Tiling Tiling::balanced(int64_t row_step, int64_t col_step, int threads, int64_t m, int64_t n, int64_t k) {
  const int64_t calls = ceil_div(m, row_step), panels = ceil_div(n, col_step);
  const int64_t most_calls = kMostRows / row_step, widest = std::min(most_panels(col_step), panels);
  Cut trial{row_step, col_step > 32 ? 4 : 2, calls, panels, k};
  Tiling best(row_step, col_step, m, n);
  double least = -1;
  for (int64_t blocks = ceil_div(calls, most_calls), tall = 0; blocks <= calls; ++blocks) {
    if (tall == ceil_div(calls, blocks)) continue;  // the same rows as before
    tall = ceil_div(calls, blocks);
    for (int64_t wide = 1; wide <= widest; ++wide) {
      trial.row_blocks = ceil_div(calls, tall);
      trial.col_blocks = ceil_div(panels, wide);
      const double time = trial.time(threads);
      if (least >= 0 && time >= least) continue;
      least = time;
      best.cut(m, n, tall * row_step, wide * col_step);
    }
  }
  return best;
}

}  // namespace vitrail::cpu
