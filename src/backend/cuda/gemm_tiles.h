// Chooses which tiles a GEMM of few rows is cut into, by a model of a Hopper GPU.
#pragma once

#include <cstdint>

#include "backend/cuda/api/gemms.h"

namespace vitrail::cuda {

// The tiles of d[m, n], of k terms, that take the least time on so many multiprocessors.
GemmTile choose_tile(int64_t m, int64_t n, int64_t k, int64_t processors);

// The time that the model predicts, in cycles of the GPU.
double tile_cycles(const GemmTile& tile, int64_t m, int64_t n, int64_t k, int64_t processors);

}  // namespace vitrail::cuda
