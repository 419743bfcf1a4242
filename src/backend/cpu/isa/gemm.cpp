// Products with packed weights, one tile of rows x columns at a time.
//
// Order of the loops: K in blocks of at most kBlockK, then panels of kNr columns, then blocks of kMr rows.
// A panel's K block (16 KB, AVX-512 32 KB) stays in L1 while all rows of the tile pass it, the tile's
// rows x kBlockK of A stay in L2, and each weight is fetched from memory once per tile. Partial sums wait
// in scratch rather than in C, since C may be the residual. Sums per K block, added at the end of each,
// also lose less to rounding than one long chain.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/math.h"
#include "backend/cpu/isa/micro.h"

namespace vitrail::VT_ISA {
namespace {

constexpr int64_t kBlockK = 256;

// c = residual + scale * act(sum + bias) for all rows of columns [column, end), at most kLanes of them.
template <Activation kAct>
void finish(const GemmTile& t, const float* sum, int64_t lds, int64_t column, int64_t end) {
  const Epilogue& e = t.epilogue;
  const int64_t cols = min64(kLanes, end - column);
  const Vec bias = e.bias ? load_up_to(e.bias + column, cols) : Vec{};
  const Vec scale = e.scale ? load_up_to(e.scale + column, cols) : set1(1.0f);
  for (int64_t r = 0; r < t.rows; ++r) {
    Vec value = apply<kAct>(load_up_to(sum + r * lds, cols) + bias) * scale;
    if (e.residual) value = value + load_up_to(e.residual + r * e.residual_stride + column, cols);
    store_up_to(t.c + r * t.ldc + column, value, cols);
  }
}

void finish_columns(const GemmTile& t, const float* sums, int64_t lds, int64_t begin, int64_t end) {
  with_activation(t.epilogue.act, [&]<Activation kAct>() {
    for (int64_t column = begin; column < end; column += kLanes)
      finish<kAct>(t, sums + column - begin, lds, column, end);
  });
}

}  // namespace

int64_t packed_elems(int64_t n, int64_t k) {
  return round_up(n, kNr) * k;
}

void pack_weights(const float* w, int64_t n, int64_t k, float* packed) {
  pack_rows(w, k, n, k, packed);
}

int64_t gemm_scratch_elems(int64_t rows, int64_t cols, int64_t k) {
  return rows * (k > kBlockK ? round_up(cols, kNr) : kNr);
}

void finish_tile(const GemmTile& t, const float* sums, int64_t lds) {
  finish_columns(t, sums, lds, t.col_begin, t.col_end);
}

void gemm_tile(const GemmTile& t) {
  const int64_t blocks = ceil_div(t.k, kBlockK);
  const int64_t block_k = round_up(ceil_div(t.k, blocks), 4);
  for (int64_t begin = 0; begin < t.k; begin += block_k) {
    const int64_t depth = min64(block_k, t.k - begin);
    for (int64_t column = t.col_begin; column < t.col_end; column += kNr) {
      float* sums = blocks > 1 ? t.scratch + (column - t.col_begin) * t.rows : t.scratch;
      multiply_panel(t.a + begin, t.lda, t.rows, t.packed + column * t.k + begin * kNr, depth, begin > 0,
                     sums, kNr);
      if (begin + depth == t.k) finish_columns(t, sums, kNr, column, min64(column + kNr, t.col_end));
    }
  }
}

}  // namespace vitrail::VT_ISA
