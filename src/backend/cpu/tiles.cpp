#include "backend/cpu/tiles.h"

namespace vitrail::cpu_tiles {

namespace {

// Rough costs of a tile in multiply-add steps of the micro-kernel (one vector of one row), from runs on Zen 3
// and Sapphire Rapids: starting a task, starting a micro-kernel, and fetching a row of A and a vector of a
// panel of the weight, which overlap with the work in part.
constexpr double kTaskSteps = 4000, kCallSteps = 100, kRowShare = 0.25, kVectorShare = 4;
// Threads do not start and end together, and a core may have other work: tiles waited for at the end. Smaller
// tiles cost little on an idle machine and save a tenth on a busy one.
constexpr double kTail = 1;

double tile_steps(int64_t row_step, int64_t vectors, int64_t calls, int64_t panels, int64_t k) {
  const auto depth = static_cast<double>(k);
  const double work =
      static_cast<double>(calls * panels) * (static_cast<double>(vectors * row_step) * depth + kCallSteps);
  const double fetch = depth * (kRowShare * static_cast<double>(calls * row_step) +
                                kVectorShare * static_cast<double>(vectors * panels));
  return work + fetch + kTaskSteps;
}

}  // namespace

Tiling Tiling::balanced(int64_t row_step, int64_t col_step, int threads, int64_t m, int64_t n, int64_t k) {
  const int64_t calls = ceil_div(m, row_step), panels = ceil_div(n, col_step);
  const int64_t most_calls = kMostRows / row_step, widest = std::min(most_panels(col_step), panels);
  const int64_t vectors = col_step > 32 ? 4 : 2;  // of a panel
  Tiling best(row_step, col_step, m, n);
  double least = -1;
  for (int64_t blocks = ceil_div(calls, most_calls), tall = 0; blocks <= calls; ++blocks) {
    if (tall == ceil_div(calls, blocks)) continue;  // the same rows as before
    tall = ceil_div(calls, blocks);
    for (int64_t wide = 1; wide <= widest; ++wide) {
      const int64_t tasks = ceil_div(calls, tall) * ceil_div(panels, wide);
      const double time = (static_cast<double>(ceil_div(tasks, threads)) + kTail) *
                          tile_steps(row_step, vectors, tall, wide, k);
      if (least >= 0 && time >= least) continue;
      least = time;
      best.cut(m, n, tall * row_step, wide * col_step);
    }
  }
  return best;
}

}  // namespace vitrail::cpu_tiles
