// A product may be launched as several, each over some of its rows: cuBLASLt is fastest where the tiles of a
// launch keep every multiprocessor busy to the end. Which rows is decided here; used by launch_products.cpp.
#pragma once

#include <cstdint>

namespace vitrail::cuda {

// How many pieces there are kernels for.
inline constexpr int kMostPieces = 4;
// Fewer rows are not worth a launch of their own.
inline constexpr int64_t kLeastPieceRows = 1024;

// Rows of each piece of an [m, n] product but the last, which has those that are left; m where one is wanted.
// Pieces of kLeastPieceRows or more are as many as were asked for.
int64_t rows_of_piece(int64_t m, int64_t n, int pieces, int64_t processors);

}  // namespace vitrail::cuda
