#include "backend/cpu/isa/micro.h"

#include <utility>

namespace vitrail::VT_ISA {
namespace {

template <int R>
MicroFn micro_up_to(int64_t rows, bool add) {
  if constexpr (R > 1) {
    if (rows < R) return micro_up_to<R - 1>(rows, add);
  }
  return add ? micro<R, true> : micro<R, false>;
}

// a0 b0 a1 b1 ..., of the lower or the upper halves.
template <int kFrom, int... I>
inline Vec zip(Vec a, Vec b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (I % 2 * kLanes + I / 2 + kFrom)...);
}

// log2(kLanes) rounds of interleaving row i with row i + kLanes/2 turn rows into columns.
inline void transpose(Vec (&rows)[kLanes]) {
  constexpr std::make_integer_sequence<int, kLanes> kAll;
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    Vec next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = zip<0>(rows[i], rows[i + kLanes / 2], kAll);
      next[2 * i + 1] = zip<kLanes / 2>(rows[i], rows[i + kLanes / 2], kAll);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

// packed[k][kNr], kLanes columns from `rows` <= kLanes rows of w.
void pack_lanes(const float* w, int64_t ldw, int64_t rows, int64_t k, float* packed) {
  for (int64_t p = 0; p < k; p += kLanes) {
    const int64_t count = min64(kLanes, k - p);
    Vec block[kLanes];
    for (int i = 0; i < kLanes; ++i) block[i] = i < rows ? load_up_to(w + i * ldw + p, count) : Vec{};
    transpose(block);
    for (int i = 0; i < count; ++i) store(packed + (p + i) * kNr, block[i]);
  }
}

}  // namespace

MicroFn micro_for(int64_t rows, bool add) {
  return micro_up_to<kMr>(rows, add);
}

void pack_rows(const float* w, int64_t ldw, int64_t n, int64_t k, float* packed) {
  for (int64_t j = 0; j < n; j += kNr) {
    for (int64_t half = 0; half < kNr; half += kLanes) {
      const int64_t rows = n - j - half;
      pack_lanes(w + (j + half) * ldw, ldw, rows < 0 ? 0 : rows, k, packed + j * k + half);
    }
  }
}

}  // namespace vitrail::VT_ISA
