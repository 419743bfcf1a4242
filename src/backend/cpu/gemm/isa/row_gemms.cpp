// GEMMs that contract rows, c[n, k] = a[rows, n]^T b[rows, k], for the gradients of weights. Both operands
// are copied row by row into groups of columns, a into strips as wide as the micro-kernel has rows and b into
// its panels, so neither is transposed and both are read from cache in order.
//
// The order of the loops is that of gemm.cpp: blocks of kBlockRows rows, panels, strips. A panel's block
// stays in L1 while all strips of the tile are multiplied with it. The sums of a block are added to c, which
// stays in cache.
#include "backend/cpu/gemm/isa/micro.h"
#include "backend/cpu/isa/kernels.h"

namespace vitrail::cpu::VT_ISA {
namespace {

constexpr int64_t kBlockRows = kLanes == 16 ? 192 : 256;  // with fewer rows c is added to more often

// Copies kWidth floats of one row of x and prefetches those kRows further down: a few rows at a time are no
// stream that the hardware prefetcher would follow.
template <int kWidth, int kRows>
inline void copy_group(const float* x, int64_t ldx, float* to) {
#pragma GCC unroll 4
  for (int i = 0; i < kWidth; i += kLineFloats) __builtin_prefetch(x + kRows * ldx + i);
  __builtin_memcpy(to, x, kWidth * sizeof(float));
}

// packed[column / kWidth][depth][kWidth], with zeros in columns past the end. A few rows of all groups are
// copied at a time, since one group ends in the cache line where the next begins.
template <int kWidth>
void pack_groups(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed) {
  constexpr int kRows = 8;
  const int64_t whole = cols / kWidth * kWidth, rest = cols - whole;
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t end = min64(first + kRows, rows);
    for (int64_t c = 0; c < whole; c += kWidth)
      for (int64_t r = first; r < end; ++r)
        copy_group<kWidth, kRows>(x + r * ldx + c, ldx, packed + c * depth + r * kWidth);
    for (int64_t r = first; r < end && rest > 0; ++r)
      for (int64_t j = 0; j < kWidth; ++j)
        packed[whole * depth + r * kWidth + j] = j < rest ? x[r * ldx + whole + j] : 0.0f;
  }
}

// Adds the sums of a partial panel to the columns of c that exist.
void add_part(const float* sums, int64_t rows, int64_t cols, bool add, float* c, int64_t ldc) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; j += kLanes) {
      const int64_t count = cols - j;
      const Vec v = load(sums + r * kNr + j);
      float* to = c + r * ldc + j;
      store_up_to(to, add ? load_up_to(to, count) + v : v, count);
    }
}

}  // namespace

void pack_strips(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed) {
  pack_groups<kMr>(x, ldx, rows, cols, depth, packed);
}

void pack_panels(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed) {
  pack_groups<kNr>(x, ldx, rows, cols, depth, packed);
}

void row_gemm_tile(const RowGemmTile& t) {
  const int64_t block = ceil_div(t.depth, ceil_div(t.depth, kBlockRows));
  float sums[kMr * kNr];
  for (int64_t first = 0; first < t.depth; first += block) {
    const int64_t depth = min64(block, t.depth - first);
    const bool add = t.add || first > 0;
    for (int64_t column = 0; column < t.cols; column += kNr) {
      const float* panel = t.panels + column * t.depth + first * kNr;
      const int64_t cols = t.cols - column;
      for (int64_t row = 0; row < t.rows; row += kMr) {
        const int64_t rows = min64(kMr, t.rows - row);
        const float* strip = t.strips + row * t.depth + first * kMr;
        float* c = t.c + row * t.ldc + column;
        if (cols >= kNr) {
          micro_for(rows, kNr, add, true)(strip, kMr, panel, depth, c, t.ldc, {});
        } else {
          micro_for(rows, cols, false, true)(strip, kMr, panel, depth, sums, kNr, {});
          add_part(sums, rows, cols, add, c, t.ldc);
        }
      }
    }
  }
}

constinit const RowGemmTable kRowGemms = {
    .pack_strips = pack_strips,
    .pack_panels = pack_panels,
    .row_gemm_tile = row_gemm_tile,
};

}  // namespace vitrail::cpu::VT_ISA
