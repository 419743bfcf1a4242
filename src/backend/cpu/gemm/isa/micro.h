// The multiplication of a matrix with one packed panel, whole or partial, and the packing of panels: the
// building blocks of all GEMMs and of attention at the same instruction set.
#pragma once

#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {

// Says what a call prefetches for later calls: every kSteps steps of k it fetches `lines` cache lines, and
// the next ones lie `pace` floats further. The weights of a large model come from memory, whose latency the
// hardware prefetcher does not hide. It is passed by reference: a copy on the stack is written by halves and
// read whole, which stalls a call until all sums of the one before it are stored.
struct Prefetch {
  const float* from = nullptr;  // null: the panel itself, which is in cache
  int64_t lines = 1, pace = 0;
};
inline constexpr int kLineFloats = 16, kSteps = 4;

// out[R, kNr] (+)= a[R, k] * panel[k, kNr]. In a partial panel only the vectors that hold columns are
// computed. k is 1 at least.
using MicroFn = void (*)(const float* a, int64_t lda, const float* panel, int64_t k, float* out, int64_t ldo,
                         const Prefetch& prefetch);

// The micro-kernel for `rows` <= kMr rows and `cols` columns, kNr or fewer in a partial panel.
MicroFn micro_for(int64_t rows, int64_t cols, bool add, bool transposed);

// Divides the prefetch of the following panel evenly among the calls for the rows of a tile: on a machine
// whose memory is busy, a burst would delay the loads of A.
class PrefetchSlices {
 public:
  PrefetchSlices(const float* from, int64_t rows, int64_t k) : from_(from) {
    if (!from) return;
    const int64_t all = ceil_div(rows, kMr);
    calls_ = min64(4, all);
    slice_.pace = ceil_div(kSteps, calls_) * kNr;  // floats of so many rows of the panel
    for (; 4 <= calls_ && 2 * calls_ <= all && slice_.pace > 1; calls_ *= 2) slice_.pace /= 2;
    slice_.lines = ceil_div(slice_.pace, kLineFloats);
    length_ = ceil_div(k, kSteps) * slice_.pace;
  }
  const Prefetch& next() {
    slice_.from = from_ + length_ * at_;
    if (++at_ == calls_) at_ = 0;
    return slice_;
  }

 private:
  const float* from_;
  Prefetch slice_;
  int64_t length_ = 0, calls_ = 1, at_ = 0;
};

template <bool kTransposed>
inline void multiply_rows(const float* a, int64_t lda, int64_t rows, const float* panel, int64_t cols,
                          int64_t k, bool add, float* out, int64_t ldo, const float* following = nullptr) {
  const MicroFn full = micro_for(kMr, cols, add, kTransposed);
  const int64_t next = kTransposed ? 1 : lda;
  PrefetchSlices prefetch(following, rows, k);
  int64_t r = 0;
  for (; r + kMr <= rows; r += kMr) full(a + r * next, lda, panel, k, out + r * ldo, ldo, prefetch.next());
  if (r < rows)
    micro_for(rows - r, cols, add, kTransposed)(a + r * next, lda, panel, k, out + r * ldo, ldo,
                                                prefetch.next());
}

// out[rows, cols] (+)= a[rows, k] * panel for any number of rows; `following` is the panel that comes next.
// If cols exceeds kNr, the first kNr columns are computed; if it is less, whole vectors are written.
inline void multiply_panel(const float* a, int64_t lda, int64_t rows, const float* panel, int64_t cols,
                           int64_t k, bool add, float* out, int64_t ldo, const float* following = nullptr) {
  multiply_rows<false>(a, lda, rows, panel, cols, k, add, out, ldo, following);
}

// out[rows, cols] (+)= a[k, rows]^T * panel.
inline void multiply_panel_transposed(const float* a, int64_t lda, int64_t rows, const float* panel,
                                      int64_t cols, int64_t k, bool add, float* out, int64_t ldo) {
  multiply_rows<true>(a, lda, rows, panel, cols, k, add, out, ldo);
}

// packed[p][k][kNr] = w[p * kNr + j, k]; rows past n are zero.
void pack_rows(const float* w, int64_t ldw, int64_t n, int64_t k, float* packed);
// Packs b row-major [k, n] into panels of `depth` >= k rows; `packed` points at the first row to fill.
void pack_matrix(const float* b, int64_t ldb, int64_t k, int64_t n, int64_t depth, float* packed);

}  // namespace vitrail::cpu::VT_ISA
