#include "backend/cpu/gemm/isa/micro.h"

#include <utility>

#include "backend/cpu/gemm/isa/micro_kernel.h"
#include "backend/cpu/isa/kernels.h"

namespace vitrail::cpu::VT_ISA {
namespace {

template <int R, int W, bool kAdd, bool kTransposed>
void micro_store(const float* a, int64_t lda, const float* panel, int64_t k, float* out, int64_t ldo,
                 const Prefetch& prefetch) {
  micro<R, W, kTransposed>(a, lda, panel, k, prefetch, [&](int r, int w, Vec sum) VT_ALWAYS {
    float* at = out + r * ldo + w * kLanes;
    store(at, kAdd ? load(at) + sum : sum);
  });
}

template <bool kTransposed, int W, int R = kMr>
MicroFn micro_of_rows(int64_t rows, bool add) {
  if constexpr (R > 1) {
    if (rows < R) return micro_of_rows<kTransposed, W, R - 1>(rows, add);
  }
  return add ? micro_store<R, W, true, kTransposed> : micro_store<R, W, false, kTransposed>;
}

template <bool kTransposed, int W = kWide>
MicroFn micro_of(int64_t rows, int64_t cols, bool add) {
  if constexpr (W > 1) {
    if (cols <= (W - 1) * kLanes) return micro_of<kTransposed, W - 1>(rows, cols, add);
  }
  return micro_of_rows<kTransposed, W>(rows, add);
}

// Interleaves a and b, a0 b0 a1 b1 ..., from their lower or their upper halves.
template <int kFrom, int... I>
inline Vec zip(Vec a, Vec b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (I % 2 * kLanes + I / 2 + kFrom)...);
}

// Transposes a square of vectors: log2(kLanes) rounds of interleaving row i with row i + kLanes/2.
inline void transpose_block(Vec (&rows)[kLanes]) {
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

// packed[k][kNr]: writes kLanes columns of a panel from `rows` <= kLanes rows of w.
void pack_lanes(const float* w, int64_t ldw, int64_t rows, int64_t k, float* packed) {
  for (int64_t p = 0; p < k; p += kLanes) {
    const int64_t count = min64(kLanes, k - p);
    Vec block[kLanes];
    for (int i = 0; i < kLanes; ++i) block[i] = i < rows ? load_up_to(w + i * ldw + p, count) : Vec{};
    transpose_block(block);
    for (int i = 0; i < count; ++i) store(packed + (p + i) * kNr, block[i]);
  }
}

}  // namespace

MicroFn micro_for(int64_t rows, int64_t cols, bool add, bool transposed) {
  return transposed ? micro_of<true>(rows, cols, add) : micro_of<false>(rows, cols, add);
}

void pack_rows(const float* w, int64_t ldw, int64_t n, int64_t k, float* packed) {
  for (int64_t j = 0; j < n; j += kNr) {
    for (int64_t lanes = 0; lanes < kNr; lanes += kLanes) {
      const int64_t rows = n - j - lanes;
      pack_lanes(w + (j + lanes) * ldw, ldw, rows < 0 ? 0 : rows, k, packed + j * k + lanes);
    }
  }
}

void panel_gemm(const PanelGemm& p) {
  const auto multiply = p.transposed ? multiply_rows<true> : multiply_rows<false>;
  multiply(p.a, p.lda, p.rows, p.panel, p.cols, p.k, false, p.out, kNr, nullptr);
}

void pack_matrix(const float* b, int64_t ldb, int64_t k, int64_t n, int64_t depth, float* packed) {
  for (int64_t column = 0; column < round_up(n, kNr); column += kLanes) {
    const int64_t count = min64(kLanes, n - column);
    float* to = packed + column / kNr * kNr * depth + column % kNr;
    for (int64_t p = 0; p < k; ++p)
      store(to + p * kNr, count > 0 ? load_up_to(b + p * ldb + column, count) : Vec{});
  }
}

constinit const PanelTable kPanels = {
    .pack_matrix = pack_matrix,
    .panel_gemm = panel_gemm,
};

}  // namespace vitrail::cpu::VT_ISA
