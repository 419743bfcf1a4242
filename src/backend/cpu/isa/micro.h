// The micro-kernel every product is made of: R rows of A times one packed panel of kNr columns, all sums
// held in registers, and the packing of panels. Used by the products and attention of the same level.
#pragma once

#include "backend/cpu/isa/vec.h"

namespace vitrail::VT_ISA {

// sum += x * b, in the register sum lies in: left to itself the compiler moves sums about and spills some.
inline __attribute__((always_inline)) void add_product(Vec& sum, Vec x, Vec b) {
#if defined(__AVX512F__)
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(b));
#elif defined(__AVX2__)
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(b));
#else
  sum = fmadd(x, b, sum);
#endif
}

// What a call fetches into cache meanwhile for those after it: `lines` cache lines every four steps of k. The
// weights of a large model come from memory, which the processor's own prefetching does not hide.
struct Ahead {
  const float* from = nullptr;
  int64_t lines = 0;
};
inline constexpr int kLineFloats = 16;

// a[R, k] * panel[k, kNr], handed row by row to done(r, low, high). A is read in place, one broadcast a
// value: with its rows in L2 that is enough for some 90 % of the FMA peak, and no copy of A is made. A may
// also lie transposed, a[k, R].
template <int R, bool kTransposed, typename Done>
inline __attribute__((always_inline)) void micro(const float* a, int64_t lda, const float* panel, int64_t k,
                                                 Ahead ahead, const Done& done) {
  Vec low[R], high[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) low[r] = high[r] = Vec{};
  const auto step = [&](int64_t p, const float* row) __attribute__((always_inline)) {
    const Vec b0 = load(row), b1 = load(row + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec x = set1(kTransposed ? a[p * lda + r] : a[r * lda + p]);
      add_product(low[r], x, b0);
      add_product(high[r], x, b1);
    }
  };
  int64_t p = 0;
  for (; p + 4 <= k; p += 4, panel += 4 * kNr) {
    for (int64_t i = 0; i < ahead.lines; ++i, ahead.from += kLineFloats) __builtin_prefetch(ahead.from, 0, 2);
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) step(p + u, panel + u * kNr);
  }
  for (; p < k; ++p, panel += kNr) step(p, panel);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) done(r, low[r], high[r]);
}

// out[R, kNr] (+)= a[R, k] * panel[k, kNr].
using MicroFn = void (*)(const float* a, int64_t lda, const float* panel, int64_t k, float* out, int64_t ldo,
                         Ahead ahead);

// The micro-kernel for `rows` <= kMr rows.
MicroFn micro_for(int64_t rows, bool add, bool transposed);

// How the rows of a tile share the fetching of what follows: four calls, or as many as there are.
class AheadSlices {
 public:
  AheadSlices(const float* from, int64_t rows, int64_t k) : from_(from) {
    if (!from) return;
    const int64_t calls = min64(4, ceil_div(rows, kMr));
    lines_ = ceil_div(ceil_div(4, calls) * kNr, kLineFloats);
    length_ = k / 4 * lines_ * kLineFloats;
    calls_ = calls;
  }
  Ahead next() { return {from_ + length_ * (at_++ % calls_), lines_}; }

 private:
  const float* from_;
  int64_t lines_ = 0, length_ = 0, calls_ = 1, at_ = 0;
};

template <bool kTransposed>
inline void multiply_rows(const float* a, int64_t lda, int64_t rows, const float* panel, int64_t k, bool add,
                          float* out, int64_t ldo, const float* following = nullptr) {
  const MicroFn full = micro_for(kMr, add, kTransposed);
  const int64_t next = kTransposed ? 1 : lda;
  AheadSlices ahead(following, rows, k);
  int64_t r = 0;
  for (; r + kMr <= rows; r += kMr) full(a + r * next, lda, panel, k, out + r * ldo, ldo, ahead.next());
  if (r < rows)
    micro_for(rows - r, add, kTransposed)(a + r * next, lda, panel, k, out + r * ldo, ldo, ahead.next());
}

// out[rows, kNr] (+)= a[rows, k] * panel, any number of rows; `following` is the panel that comes next.
inline void multiply_panel(const float* a, int64_t lda, int64_t rows, const float* panel, int64_t k, bool add,
                           float* out, int64_t ldo, const float* following = nullptr) {
  multiply_rows<false>(a, lda, rows, panel, k, add, out, ldo, following);
}

// out[rows, kNr] (+)= a[k, rows]^T * panel.
inline void multiply_panel_transposed(const float* a, int64_t lda, int64_t rows, const float* panel,
                                      int64_t k, bool add, float* out, int64_t ldo) {
  multiply_rows<true>(a, lda, rows, panel, k, add, out, ldo);
}

// packed[p][k][kNr] = w[p * kNr + j, k], rows past n zero.
void pack_rows(const float* w, int64_t ldw, int64_t n, int64_t k, float* packed);

}  // namespace vitrail::VT_ISA
