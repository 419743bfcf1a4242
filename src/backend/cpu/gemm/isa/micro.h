// GEMMs with one packed panel, or what there is of it, and the packing of panels: what all GEMMs and
// attention of the same level are made of.
#pragma once

#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {

// What a call fetches into cache meanwhile for those after it: every kSteps steps of k so many `lines`, the
// next ones `pace` floats further. The weights of a large model come from memory, which the processor's own
// prefetching does not hide. Passed by reference: a copy on the stack is written by halves and read whole,
// which holds a call back until all sums of the one before it are stored.
struct Ahead {
  const float* from = nullptr;  // null: the panel itself, which is at hand
  int64_t lines = 1, pace = 0;
};
inline constexpr int kLineFloats = 16, kSteps = 4;

// out[R, kNr] (+)= a[R, k] * panel[k, kNr]; of a panel that is not full only the vectors with columns in
// them. k is 1 at least.
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
    slice_.pace = ceil_div(kSteps, calls_) * kNr;  // of as many rows of the panel
    for (; 4 <= calls_ && 2 * calls_ <= all && slice_.pace > 1; calls_ *= 2) slice_.pace /= 2;
    slice_.lines = ceil_div(slice_.pace, kLineFloats);
    length_ = ceil_div(k, kSteps) * slice_.pace;
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
// The same of b row-major [k, n], into panels of `depth` >= k rows; packed points at the first row to fill.
void pack_matrix(const float* b, int64_t ldb, int64_t k, int64_t n, int64_t depth, float* packed);

}  // namespace vitrail::cpu::VT_ISA
