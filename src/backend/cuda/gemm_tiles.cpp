#include "backend/cuda/gemm_tiles.h"

#include <algorithm>

#include "base/checked.h"

namespace vitrail::cuda {

namespace {

// These costs were fitted to GEMMs of ViT-B/16 at batch 1 to 8 on an H200, in cycles of a multiprocessor.
constexpr double kColumnCycles = 2;   // of the tensor cores, for 64 rows of a column and a step
constexpr double kPortBytes = 36;     // that a multiprocessor gets from the L2 cache in a cycle
constexpr double kCacheBytes = 4560;  // that the L2 cache delivers to all of them
constexpr double kLeastStep = 170;    // of a step, whatever its size
constexpr double kStart = 3000;       // of a launch: its first loads, and its epilogue
constexpr double kExchange = 2800;    // of sums between the blocks of a cluster
constexpr double kBeside = 0.6;       // what a block takes beside another one, of its time alone

constexpr int kColumns[] = {128, 96, 64, 32};

}  // namespace

double tile_cycles(const GemmTile& tile, int64_t m, int64_t n, int64_t k, int64_t processors) {
  const int64_t blocks = ceil_div(m, kSmallTileRows) * ceil_div(n, tile.columns) * tile.splits;
  const auto steps = static_cast<double>(ceil_div(ceil_div(k, kStepTerms), tile.splits));
  const auto rows = static_cast<double>(std::min<int64_t>(kSmallTileRows, m));  // others are not loaded
  const double columns = tile.columns;
  const double bytes = (rows + columns) * kStepTerms * 2;
  const double step = std::max({columns * kColumnCycles, bytes / kPortBytes, kLeastStep});
  const double turns = 1 + kBeside * static_cast<double>(ceil_div(blocks, processors) - 1);
  const double cache = static_cast<double>(blocks) * steps * bytes / kCacheBytes;
  return kStart + (tile.splits > 1 ? kExchange : 0) + std::max(turns * steps * step, cache);
}

GemmTile choose_tile(int64_t m, int64_t n, int64_t k, int64_t processors) {
  const int64_t most = std::min<int64_t>(ceil_div(k, kStepTerms), kMostSplits);
  GemmTile best;
  double least = 0;
  for (const int columns : kColumns)
    for (int splits = 1; splits <= most; ++splits) {
      const GemmTile tile{columns, splits};
      const double cycles = tile_cycles(tile, m, n, k, processors);
      if (least == 0 || cycles < least) {
        best = tile;
        least = cycles;
      }
    }
  return best;
}

}  // namespace vitrail::cuda
