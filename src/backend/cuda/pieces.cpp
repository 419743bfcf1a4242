#include "backend/cuda/pieces.h"

#include <algorithm>
#include <numeric>

namespace vitrail::cuda {

namespace {

constexpr int64_t kTileRows = 128, kTileColumns = 256;  // of cuBLASLt's fast kernels

int64_t parts(int64_t whole, int64_t part) {
  return (whole + part - 1) / part;
}

}  // namespace

int64_t rows_of_piece(int64_t m, int64_t n, int pieces, int64_t processors) {
  if (pieces == 1) return m;
  const int64_t equal = parts(parts(m, pieces), kTileRows);  // in rows of tiles, as the next two
  const int64_t wave = processors / std::gcd(processors, parts(n, kTileColumns));  // the fewest to fill all
  const int64_t filling = parts(equal, wave) * wave;
  const bool near = filling - equal <= equal / 8;
  return std::min(m, (near ? filling : equal) * kTileRows);
}

}  // namespace vitrail::cuda
