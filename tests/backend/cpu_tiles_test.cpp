// How CPU drivers cut work: every element in one tile, tiles within their bounds, scratch by worker.
#include "backend/cpu/tiles.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "backend/cpu/host/levels.h"
#include "backend/cpu/norm/norm.h"

namespace vitrail::cpu {
namespace {

TEST(CpuTiles, SizesByTheNumberOfRows) {
  const struct {
    int64_t row_step, col_step, m, n, rows, cols, row_blocks, col_blocks;
  } cases[] = {{6, 16, 197, 768, 54, 64, 4, 12}, {6, 16, 1, 10, 6, 64, 1, 1},
               {6, 16, 400, 64, 54, 64, 8, 1},   {6, 16, 401, 65, 102, 64, 4, 2},
               {8, 32, 48, 129, 48, 128, 1, 2},  {8, 64, 72, 128, 40, 128, 2, 1},
               {8, 256, 71, 300, 72, 256, 1, 2}};
  for (const auto& c : cases) {
    const Tiling tiling(c.row_step, c.col_step, c.m, c.n);
    EXPECT_EQ((std::vector<int64_t>{tiling.rows, tiling.cols, tiling.row_blocks, tiling.col_blocks}),
              (std::vector<int64_t>{c.rows, c.cols, c.row_blocks, c.col_blocks}))
        << c.m << " x " << c.n;
    EXPECT_EQ(tiling.tasks(), c.row_blocks * c.col_blocks);
  }
  EXPECT_EQ(panels_per_task(16), 4);
  EXPECT_EQ(panels_per_task(64), 2);
  EXPECT_EQ(panels_per_task(128), 1);
  EXPECT_EQ(panels_per_task(256), 1);
  EXPECT_EQ(Tiling::most_rows(6, 1000), 108);
  EXPECT_EQ(Tiling::most_rows(16, 1000), 96);
  EXPECT_EQ(Tiling::most_rows(6, 5), 6);
  EXPECT_EQ(Tiling::most_cols(16, 1000), 128);
  EXPECT_EQ(Tiling::most_cols(64, 1000), 256);
  EXPECT_EQ(Tiling::most_cols(16, 17), 32);
  EXPECT_EQ(padded_bytes(1), 64u);
  EXPECT_EQ(padded_bytes(16), 64u);
  EXPECT_EQ(padded_bytes(17), 128u);
}

TEST(CpuTiles, EveryElementLiesInOneTile) {
  for (const auto& [m, n] :
       {std::pair<int64_t, int64_t>{197, 100}, {100, 197}, {1, 500}, {500, 1}, {113, 113}, {1, 5000}})
    for (const int threads : {1, 3, 16})
      for (const bool balanced : {false, true}) {
        const Tiling tiling = balanced ? Tiling::balanced(6, 16, threads, m, n, 64) : Tiling(6, 16, m, n);
        std::vector<int> seen(static_cast<size_t>(m * n));
        for (int64_t task = 0; task < tiling.tasks(); ++task) {
          const Place place(tiling, task, m, n);
          ASSERT_TRUE(place.rows > 0 && place.row + place.rows <= m && place.col_end <= n);
          for (int64_t r = place.row; r < place.row + place.rows; ++r)
            for (int64_t c = place.col_begin; c < place.col_end; ++c) ++seen[static_cast<size_t>(r * n + c)];
        }
        EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), m * n) << m << " x " << n << " " << threads;
        if (!balanced) continue;
        EXPECT_LE(tiling.rows, Tiling::most_rows(6, m));
        EXPECT_LE(tiling.cols, Tiling::most_cols(16, n));
        EXPECT_EQ(tiling.rows % 6, 0);
        EXPECT_EQ(tiling.cols % 16, 0);
      }
}

// Tasks that follow each other share the longer operand.
TEST(CpuTiles, NeighboursShareTheLongerOperand) {
  const Tiling tall(6, 16, 500, 200), wide(6, 16, 200, 500);
  EXPECT_EQ(Place(tall, 0, 500, 200).row, Place(tall, 1, 500, 200).row);
  EXPECT_NE(Place(tall, 0, 500, 200).col_begin, Place(tall, 1, 500, 200).col_begin);
  EXPECT_EQ(Place(wide, 0, 200, 500).col_begin, Place(wide, 1, 200, 500).col_begin);
  EXPECT_NE(Place(wide, 0, 200, 500).row, Place(wide, 1, 200, 500).row);
}

TEST(CpuTiles, MoreThreadsGetMoreTasks) {
  const int64_t one = Tiling::balanced(6, 16, 1, 197, 768, 768).tasks(),
                many = Tiling::balanced(6, 16, 16, 197, 768, 768).tasks();
  EXPECT_LT(one, many);
  EXPECT_GE(many, 16);
}

// To start a task costs as much as some thousand steps of a micro-kernel: what is less is not cut.
TEST(CpuTiles, ALittleWorkIsOneTask) {
  EXPECT_EQ(Tiling::balanced(6, 16, 1, 1, 1, 1).tasks(), 1);
  EXPECT_EQ(Tiling::balanced(6, 16, 16, 6, 16, 100000).tasks(), 1) << "a call of the micro-kernel";
  EXPECT_EQ(Tiling::balanced(6, 16, 1, 12, 32, 8).tasks(), 1);
  const Tiling small = Tiling::balanced(6, 16, 1, 24, 64, 8);
  EXPECT_EQ(small.tasks(), 1);
  EXPECT_EQ(small.rows, 24);
  EXPECT_EQ(small.cols, 64);
  EXPECT_GT(Tiling::balanced(6, 16, 1, 24, 64, 4000).tasks(), 1)
      << "much work is, so that threads end together";
}

// Two rows of partial sums for every 16384 values of the input, at least one row of it.
TEST(CpuTiles, ScratchOfALayernormsGradients) {
  const struct {
    int64_t rows, width;
    size_t floats;
  } cases[] = {{1, 1, 16},
               {16384, 1, 16},
               {16385, 1, 16},
               {32769, 1, 16},
               {100, 768, 5 * 2 * 768},
               {21, 768, 2 * 768},
               {22, 768, 2 * 2 * 768},
               {3, 20000, 3 * 2 * 20000}};
  for (const auto& c : cases) {
    const ScratchNeed need = layernorm_grad_scratch(c.rows, c.width, true);
    EXPECT_EQ(need.shared_bytes, c.floats * sizeof(float)) << c.rows << " x " << c.width;
    EXPECT_EQ(need.worker_bytes, 0u);
    EXPECT_EQ(layernorm_grad_scratch(c.rows, c.width, false).total(4), 0u) << "no parameters, no sums";
  }
}

TEST(CpuTiles, RowsAreCutByTheirWidth) {
  ThreadPool pool(2);
  const CpuContext context{pool, isa_kernels(IsaLevel::kBaseline), {}, {}};
  const auto blocks = [&](int64_t rows, int64_t width) {
    std::set<std::pair<int64_t, int64_t>> seen;
    std::mutex mutex;
    spread_rows(context, rows, width, [&](int64_t first, int64_t count) {
      const std::lock_guard lock(mutex);
      seen.emplace(first, count);
    });
    return seen;
  };
  using Blocks = std::set<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(blocks(5, 8192), (Blocks{{0, 2}, {2, 2}, {4, 1}}));
  EXPECT_EQ(blocks(3, 16384), (Blocks{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(blocks(2, 100000), (Blocks{{0, 1}, {1, 1}}));
  EXPECT_EQ(blocks(9, 1), (Blocks{{0, 9}}));
  EXPECT_EQ(blocks(0, 8), Blocks());
}

TEST(CpuTiles, ScratchIsSharedThenOfEachWorker) {
  ThreadPool pool(3);
  alignas(64) std::byte memory[64 + 3 * 128];
  const ScratchNeed need{.shared_bytes = 64, .worker_bytes = 128};
  EXPECT_EQ(need.total(3), sizeof memory);
  const CpuContext context{pool, isa_kernels(IsaLevel::kBaseline), {}, memory};
  const Scratch scratch(context, need);
  EXPECT_EQ(static_cast<void*>(scratch.shared()), memory);
  EXPECT_EQ(static_cast<void*>(scratch.of(0)), memory + 64);
  EXPECT_EQ(static_cast<void*>(scratch.of(2)), memory + 64 + 256);
  EXPECT_THROW(Scratch(past(context, 64), need), Error) << "64 bytes too few";
  EXPECT_EQ(past(context, 64).scratch.size(), sizeof memory - 64);
}

}  // namespace
}  // namespace vitrail::cpu
