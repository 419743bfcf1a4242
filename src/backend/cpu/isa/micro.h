// The micro-kernel every product is made of: R rows of A times one packed panel of kNr columns, all sums
// held in registers, and the packing of panels. Used by the products and attention of the same level.
#pragma once

#include "backend/cpu/isa/vec.h"

namespace vitrail::VT_ISA {

// Two vectors wide; as many rows as leave registers for two of B and one of A (16 registers, or 32).
inline constexpr int kMr = kLanes == 16 ? 12 : 6;
inline constexpr int kNr = 2 * kLanes;

// out[R, kNr] (+)= a[R, k] * panel[k, kNr]. A is read in place, one broadcast a value: with
// its rows in L2 that is enough for some 90 % of the FMA peak, and no copy of A is made. A may also lie
// transposed, a[k, R].
template <int R, bool kAdd, bool kTransposed>
void micro(const float* a, int64_t lda, const float* panel, int64_t k, float* out, int64_t ldo) {
  Vec low[R], high[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) low[r] = high[r] = Vec{};
#pragma GCC unroll 4
  for (int64_t p = 0; p < k; ++p) {
    const Vec b0 = load(panel), b1 = load(panel + kLanes);
    __builtin_prefetch(panel + 8 * kNr);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec x = set1(kTransposed ? a[p * lda + r] : a[r * lda + p]);
      low[r] = fmadd(x, b0, low[r]);
      high[r] = fmadd(x, b1, high[r]);
    }
    panel += kNr;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    float* row = out + r * ldo;
    store(row, kAdd ? load(row) + low[r] : low[r]);
    store(row + kLanes, kAdd ? load(row + kLanes) + high[r] : high[r]);
  }
}

using MicroFn = void (*)(const float*, int64_t, const float*, int64_t, float*, int64_t);

// The micro-kernel for `rows` <= kMr rows.
MicroFn micro_for(int64_t rows, bool add, bool transposed);

template <bool kTransposed>
inline void multiply_rows(const float* a, int64_t lda, int64_t rows, const float* panel, int64_t k, bool add,
                          float* out, int64_t ldo) {
  const MicroFn full = micro_for(kMr, add, kTransposed);
  const int64_t next = kTransposed ? 1 : lda;
  int64_t r = 0;
  for (; r + kMr <= rows; r += kMr) full(a + r * next, lda, panel, k, out + r * ldo, ldo);
  if (r < rows) micro_for(rows - r, add, kTransposed)(a + r * next, lda, panel, k, out + r * ldo, ldo);
}

// out[rows, kNr] (+)= a[rows, k] * panel, any number of rows.
inline void multiply_panel(const float* a, int64_t lda, int64_t rows, const float* panel, int64_t k, bool add,
                           float* out, int64_t ldo) {
  multiply_rows<false>(a, lda, rows, panel, k, add, out, ldo);
}

// out[rows, kNr] (+)= a[k, rows]^T * panel.
inline void multiply_panel_transposed(const float* a, int64_t lda, int64_t rows, const float* panel,
                                      int64_t k, bool add, float* out, int64_t ldo) {
  multiply_rows<true>(a, lda, rows, panel, k, add, out, ldo);
}

// packed[p][k][kNr] = w[p * kNr + j, k], rows past n zero.
void pack_rows(const float* w, int64_t ldw, int64_t n, int64_t k, float* packed);

}  // namespace vitrail::VT_ISA
