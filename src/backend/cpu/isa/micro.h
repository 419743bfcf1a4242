// The micro-kernel every product is made of: R rows of A times W vectors of columns, one packed panel or what
// there is of it, all sums held in registers; and the packing of panels. Used by the products and attention
// of the same level.
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

// What a call fetches into cache meanwhile for those after it: `lines` cache lines every `steps` steps of k,
// a power of two from 4 on. The weights of a large model come from memory, which the processor's own
// prefetching does not hide. Passed by reference: a copy on the stack is written by halves and read whole,
// which holds a call back until all sums of the one before it are stored.
struct Ahead {
  const float* from = nullptr;
  int64_t lines = 0, steps = 4;
};
inline constexpr int kLineFloats = 16;

// a[R, k] * panel[k, first W vectors of kNr], handed on as done(r, w, sum). A is read in place, one broadcast
// a value: with its rows in L2 that is enough for some 90 % of the FMA peak, and no copy of A is made. A may
// also lie transposed, a[k, R].
template <int R, int W, bool kTransposed, typename Done>
inline __attribute__((always_inline)) void micro(const float* a, int64_t lda, const float* panel, int64_t k,
                                                 const Ahead& ahead, const Done& done) {
  const float* fetched = ahead.from;
  Vec sums[R][W];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) sums[r][w] = Vec{};
  const auto step = [&](int64_t p, const float* row) __attribute__((always_inline)) {
    Vec b[W];
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) b[w] = load(row + w * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec x = set1(kTransposed ? a[p * lda + r] : a[r * lda + p]);
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) add_product(sums[r][w], x, b[w]);
    }
  };
  int64_t p = 0;
  for (; p + 4 <= k; p += 4, panel += 4 * kNr) {
    if ((p & (ahead.steps - 1)) == 0)
      for (int64_t i = 0; i < ahead.lines; ++i, fetched += kLineFloats) __builtin_prefetch(fetched, 0, 2);
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) step(p + u, panel + u * kNr);
  }
  for (; p < k; ++p, panel += kNr) step(p, panel);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) done(r, w, sums[r][w]);
}

// out[R, kNr] (+)= a[R, k] * panel[k, kNr]; of a panel that is not full only the vectors with columns in
// them.
using MicroFn = void (*)(const float* a, int64_t lda, const float* panel, int64_t k, float* out, int64_t ldo,
                         const Ahead& ahead);

// The micro-kernel for `rows` <= kMr rows and `cols` columns, kNr or the rest.
MicroFn micro_for(int64_t rows, int64_t cols, bool add, bool transposed);

// How the calls for the rows of a tile share the fetching of what follows, evenly: on a machine whose memory
// is busy, a burst of it would keep the rows of A waiting.
class AheadSlices {
 public:
  AheadSlices(const float* from, int64_t rows, int64_t k) : from_(from) {
    if (!from) return;
    const int64_t all = ceil_div(rows, kMr);
    calls_ = min64(4, all);
    slice_.lines = ceil_div(ceil_div(4, calls_) * kNr, kLineFloats);
    for (; 4 <= calls_ && 2 * calls_ <= all; calls_ *= 2) slice_.steps *= 2;
    length_ = ceil_div(k, slice_.steps) * slice_.lines * kLineFloats;
  }
  const Ahead& next() {
    slice_.from = from_ + length_ * at_;
    if (++at_ == calls_) at_ = 0;
    return slice_;
  }

 private:
  const float* from_;
  Ahead slice_;
  int64_t length_ = 0, calls_ = 1, at_ = 0;
};

template <bool kTransposed>
inline void multiply_rows(const float* a, int64_t lda, int64_t rows, const float* panel, int64_t cols,
                          int64_t k, bool add, float* out, int64_t ldo, const float* following = nullptr) {
  const MicroFn full = micro_for(kMr, cols, add, kTransposed);
  const int64_t next = kTransposed ? 1 : lda;
  AheadSlices ahead(following, rows, k);
  int64_t r = 0;
  for (; r + kMr <= rows; r += kMr) full(a + r * next, lda, panel, k, out + r * ldo, ldo, ahead.next());
  if (r < rows)
    micro_for(rows - r, cols, add, kTransposed)(a + r * next, lda, panel, k, out + r * ldo, ldo,
                                                ahead.next());
}

// out[rows, cols] (+)= a[rows, k] * panel, any number of rows; `following` is the panel that comes next. Of
// more than kNr columns the first kNr are taken, of fewer whole vectors are written.
inline void multiply_panel(const float* a, int64_t lda, int64_t rows, const float* panel, int64_t cols,
                           int64_t k, bool add, float* out, int64_t ldo, const float* following = nullptr) {
  multiply_rows<false>(a, lda, rows, panel, cols, k, add, out, ldo, following);
}

// out[rows, cols] (+)= a[k, rows]^T * panel.
inline void multiply_panel_transposed(const float* a, int64_t lda, int64_t rows, const float* panel,
                                      int64_t cols, int64_t k, bool add, float* out, int64_t ldo) {
  multiply_rows<true>(a, lda, rows, panel, cols, k, add, out, ldo);
}

// packed[p][k][kNr] = w[p * kNr + j, k], rows past n zero.
void pack_rows(const float* w, int64_t ldw, int64_t n, int64_t k, float* packed);

}  // namespace vitrail::VT_ISA
