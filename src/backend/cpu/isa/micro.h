// The micro-kernel every product is made of: R rows of A times W vectors of columns, one packed panel or what
// there is of it, all sums held in registers; and the packing of panels. Used by the products and attention
// of the same level.
#pragma once

#include "backend/cpu/isa/ordered.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::VT_ISA {

// What a call fetches into cache meanwhile for those after it: every kSteps steps of k so many `lines`, the
// next ones `pace` floats further. The weights of a large model come from memory, which the processor's own
// prefetching does not hide. Passed by reference: a copy on the stack is written by halves and read whole,
// which holds a call back until all sums of the one before it are stored.
struct Ahead {
  const float* from = nullptr;
  int64_t lines = 1, pace = 0;
};
inline constexpr int kLineFloats = 16, kSteps = 4;

// How many values of A are loaded before their turn: as many as there are registers left, at most three.
constexpr int early_values(int rows, int vectors) {
  const int left = kRegisters - (rows + 1) * vectors;
  return left >= 4 && rows >= 3 ? 3 : left >= 2 ? 1 : 0;
}

template <int kValue>
struct Constant {};

// f(Constant<0>()), f(Constant<1>()), ...
template <int... I, typename F>
inline __attribute__((always_inline)) void for_each_of(std::integer_sequence<int, I...>, const F& f) {
  (f(Constant<I>()), ...);
}
template <int kCount, typename F>
inline __attribute__((always_inline)) void for_each(const F& f) {
  for_each_of(std::make_integer_sequence<int, kCount>(), f);
}

// a[R, k] * panel[k, first W vectors of kNr], handed on as done(r, w, sum). A is read in place, one broadcast
// a value: with its rows in L2 that is enough for some 90 % of the FMA peak, and no copy of A is made. A may
// also lie transposed, a[k, R]. A vector of the panel is loaded as soon as the one before it has been used.
template <int R, int W, bool kTransposed, typename Done>
inline __attribute__((always_inline)) void micro(const float* a, int64_t lda, const float* panel, int64_t k,
                                                 const Ahead& ahead, const Done& done) {
  constexpr int kEarly = early_values(R, W), kValues = kEarly + 1;
  const float *low = a, *high = a + 3 * lda;  // lines 0 to 2 and 3 to 5 of A
  const int64_t next_step = kTransposed ? lda : 1;
  const float* fetched = ahead.from ? ahead.from : panel;
  Vec sums[R][W] = {}, b[W] = {}, x[kValues] = {};
  const auto load_value = [&]<int kAt>(Constant<kAt>) __attribute__((always_inline)) {
    constexpr int kStep = kAt / R, kRow = kAt % R, kLine = kTransposed ? kStep : kRow;
    constexpr int kWithin = kTransposed ? kRow : kStep;
    spread_now<kLine % 3, kWithin>(x[kAt % kValues], kLine < 3 ? low : high, lda);
  };
  const auto multiply = [&]<int kAt>(Constant<kAt>, const float* following) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      add_product(sums[kAt % R][w], x[kAt % kValues], b[w]);
      if (following) load_now(b[w], following + w * kLanes);
    }
  };
  const auto load_row = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) load_now(b[w], panel + w * kLanes);
  };
  const auto move_on = [&](int steps) __attribute__((always_inline)) {
    low += steps * next_step, high += steps * next_step, panel += steps * kNr, k -= steps;
  };
  // Four steps; those that follow, if any, find their first values loaded.
  const auto four_steps = [&]<bool kMore>() __attribute__((always_inline)) {
    for_each<kSteps * R>([&]<int kAt>(Constant<kAt> at) __attribute__((always_inline)) {
      constexpr bool kRowEnds = kAt % R == R - 1 && (kMore || kAt + 1 < kSteps * R);
      if constexpr (kMore || kAt + kEarly < kSteps * R) load_value(Constant<kAt + kEarly>());
      multiply(at, kRowEnds ? panel + (kAt / R + 1) * kNr : nullptr);
    });
    move_on(kSteps);
  };
  load_row();
  for_each<kEarly>(load_value);
  while (k > kSteps) {
    __builtin_prefetch(fetched, 0, 2);
    for (int64_t i = 1; i < ahead.lines; ++i) __builtin_prefetch(fetched + i * kLineFloats, 0, 2);
    fetched += ahead.pace;
    four_steps.template operator()<true>();
  }
  if (k == kSteps) four_steps.template operator()<false>();
  for (; k > 0; move_on(1)) {
    load_row();
    for_each<R>([&]<int kAt>(Constant<kAt> at) __attribute__((always_inline)) {
      load_value(at);
      multiply(at, nullptr);
    });
  }
  for_each<R * W>([&]<int kAt>(Constant<kAt>)
                      __attribute__((always_inline)) { done(kAt / W, kAt % W, sums[kAt / W][kAt % W]); });
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
    slice_.pace = ceil_div(4, calls_) * kNr;  // of four rows of the panel
    for (; 4 <= calls_ && 2 * calls_ <= all; calls_ *= 2) slice_.pace /= 2;
    slice_.lines = ceil_div(slice_.pace, kLineFloats);
    length_ = ceil_div(k, 4) * slice_.pace;
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
