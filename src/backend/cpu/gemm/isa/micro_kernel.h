// The micro-kernel: R rows of A times W vectors of columns of a panel, with all sums in registers. It only
// computes sums; its callers store them or run an epilogue on them.
#pragma once

#include "backend/cpu/gemm/isa/micro.h"
#include "backend/cpu/gemm/isa/ordered.h"

namespace vitrail::cpu::VT_ISA {

// The number of values of A that are loaded early: as many as there are registers left, at most three.
constexpr int early_values(int rows, int vectors) {
  const int left = kRegisters - (rows + 1) * vectors;
  return left >= 4 && rows >= 3 ? 3 : left >= 2 ? 1 : 0;
}

template <int kValue>
struct Constant {};

// Calls f(Constant<0>()), f(Constant<1>()), ...
template <int... I, typename F>
VT_INLINE void for_each_of(std::integer_sequence<int, I...>, const F& f) {
  (f(Constant<I>()), ...);
}
template <int kCount, typename F>
VT_INLINE void for_each(const F& f) {
  for_each_of(std::make_integer_sequence<int, kCount>(), f);
}

// a[R, k] * panel[k, first W vectors of kNr], all in registers. A is read in place, one broadcast per value:
// with its rows in L2 that reaches some 90 % of the FMA peak, and no copy of A is made. A may also lie
// transposed, a[k, R]. A vector of the panel is loaded as soon as the one before it has been used.
template <int R, int W, bool kTransposed>
struct Micro {
  static constexpr int kEarly = early_values(R, W), kValues = kEarly + 1;
  const float *low, *high;  // lines 0 to 2 and 3 to 5 of A
  int64_t lda;
  const float* panel;
  int64_t k;
  Vec sums[R][W] = {}, b[W] = {}, x[kValues] = {};

  // Loads value kAt of A, counted from here: step kAt / R, row kAt % R.
  template <int kAt>
  VT_INLINE void load_value() {
    constexpr int kStep = kAt / R, kRow = kAt % R, kLine = kTransposed ? kStep : kRow;
    constexpr int kWithin = kTransposed ? kRow : kStep;
    spread_now<kLine % 3, kWithin>(x[kAt % kValues], kLine < 3 ? low : high, lda);
  }
  VT_INLINE void load_row() {
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) load_now(b[w], panel + w * kLanes);
  }
  template <int kAt, bool kReload>
  VT_INLINE void multiply() {
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      add_product(sums[kAt % R][w], x[kAt % kValues], b[w]);
      if (kReload) load_now(b[w], panel + (kAt / R + 1) * kNr + w * kLanes);
    }
  }
  template <int kCount>
  VT_INLINE void move_on() {
    const int64_t by = kCount * (kTransposed ? lda : 1);
    low += by;
    high += by;
    panel += kCount * kNr;
    k -= kCount;
  }

  // Loads what four_steps expects in registers, as four_steps<true> leaves it for the next call.
  VT_INLINE void start() {
    load_row();
    for_each<kEarly>([&]<int kAt>(Constant<kAt>) VT_ALWAYS { load_value<kAt>(); });
  }
  // Computes four steps of k. With kMore it also loads the first values of the steps that follow.
  template <bool kMore>
  VT_INLINE void four_steps() {
    constexpr int kAll = kSteps * R;
    for_each<kAll>([&]<int kAt>(Constant<kAt>) VT_ALWAYS {
      if constexpr (kMore || kAt + kEarly < kAll) load_value<kAt + kEarly>();
      multiply<kAt, kAt % R == R - 1 && (kMore || kAt + 1 < kAll)>();
    });
    move_on<kSteps>();
  }
  VT_INLINE void one_step() {
    load_row();
    for_each<R>([&]<int kAt>(Constant<kAt>) VT_ALWAYS {
      load_value<kAt>();
      multiply<kAt, false>();
    });
    move_on<1>();
  }
};

// Computes a[R, k] * panel and calls done(r, w, sum) for each vector of sums.
template <int R, int W, bool kTransposed, typename Done>
VT_INLINE void micro(const float* a, int64_t lda, const float* panel, int64_t k, const Prefetch& prefetch,
                     const Done& done) {
  Micro<R, W, kTransposed> m{a, a + 3 * lda, lda, panel, k};
  const float* fetched = prefetch.from ? prefetch.from : panel;
  const auto fetch = [&]() VT_ALWAYS {
    __builtin_prefetch(fetched, 0, 2);
    for (int64_t i = 1; i < prefetch.lines; ++i) __builtin_prefetch(fetched + i * kLineFloats, 0, 2);
    fetched += prefetch.pace;
  };
  m.start();
  for (; m.k > kSteps; m.template four_steps<true>()) fetch();
  fetch();
  if (m.k == kSteps) m.template four_steps<false>();
  while (m.k > 0) m.one_step();
  for_each<R * W>([&]<int kAt>(Constant<kAt>)
                      VT_ALWAYS { done(kAt / W, kAt % W, m.sums[kAt / W][kAt % W]); });
}

}  // namespace vitrail::cpu::VT_ISA
