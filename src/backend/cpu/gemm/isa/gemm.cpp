// GEMMs with packed weights, one tile of rows x columns at a time.
//
// The loops go over K in blocks of at most kBlockK, then over panels of kNr columns, then over blocks of kMr
// rows. A panel's K block (24 KB, AVX-512 32 KB) stays in L1 while all rows of the tile are multiplied with
// it, the tile's rows x kBlockK of A stay in L2, and each weight is fetched from memory once per tile, during
// the panel before it. Partial sums are kept in scratch and not in C, since C may be the residual; the last K
// block runs the epilogue on its sums in registers. Sums per K block, added at the end of each, also lose
// less to rounding than one long chain.
#include "backend/cpu/gemm/isa/micro_kernel.h"
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/math.h"

namespace vitrail::cpu::VT_ISA {
namespace {

// c = residual + scale * act(sum + bias) for all rows of columns [column, end), at most kLanes of them.
template <Activation kAct>
void finish(const GemmTile& t, const float* sum, int64_t lds, int64_t column, int64_t end) {
  const Epilogue& e = t.epilogue;
  const int64_t cols = min64(kLanes, end - column);
  for (int64_t r = 0; r < t.rows; ++r) {
    Vec value = load_up_to(sum + r * lds, cols);
    if (e.bias) value = value + load_up_to(e.bias + column, cols);
    value = apply<kAct>(value);
    if (e.scale) value = value * load_up_to(e.scale + column, cols);
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

// The last K block of R rows of a whole panel: the sums, the partial sums of earlier K blocks and the
// epilogue, all in registers, by the same operations in the same order as finish.
template <int R, Activation kAct>
void micro_finish(const float* a, int64_t lda, const float* panel, int64_t k, const float* waiting,
                  const GemmTile& t, int64_t row, int64_t column, const Prefetch& prefetch) {
  // These are copied to locals, since to the compiler a store to C might change them in t.
  const auto at_column = [&](const float* vector) { return vector ? vector + column : nullptr; };
  const float *const bias = at_column(t.epilogue.bias), *const scale = at_column(t.epilogue.scale);
  const int64_t ldr = t.epilogue.residual_stride, ldc = t.ldc;
  const float* const residual = t.epilogue.residual ? t.epilogue.residual + row * ldr + column : nullptr;
  float* const c = t.c + row * ldc + column;
  micro<R, kWide, false>(a, lda, panel, k, prefetch, [&](int r, int w, Vec sum) VT_ALWAYS {
    const int64_t at = w * kLanes;
    if (waiting) sum = load(waiting + r * kNr + at) + sum;
    if (bias) sum = sum + load(bias + at);
    sum = apply<kAct>(sum);
    if (scale) sum = sum * load(scale + at);
    if (residual) sum = sum + load(residual + r * ldr + at);
    store(c + r * ldc + at, sum);
  });
}

using FinishFn = void (*)(const float*, int64_t, const float*, int64_t, const float*, const GemmTile&,
                          int64_t, int64_t, const Prefetch&);
template <Activation kAct, int R = kMr>
FinishFn finish_for(int64_t rows) {
  if constexpr (R > 1) {
    if (rows < R) return finish_for<kAct, R - 1>(rows);
  }
  return micro_finish<R, kAct>;
}

// One K block [begin, begin + depth) of one panel; `following` is the block that comes next and is
// prefetched.
struct PanelBlock {
  int64_t column, begin, depth;
  float* waiting;  // the partial sums of this panel's earlier K blocks
  const float* following;
};

template <Activation kAct>
void finish_panel(const GemmTile& t, const PanelBlock& b) {
  const float* panel = t.packed + b.column * t.k + b.begin * kNr;
  PrefetchSlices prefetch(b.following, t.rows, b.depth);
  for (int64_t row = 0; row < t.rows; row += kMr)
    finish_for<kAct>(min64(kMr, t.rows - row))(t.a + row * t.lda + b.begin, t.lda, panel, b.depth,
                                               b.begin > 0 ? b.waiting + row * kNr : nullptr, t, row,
                                               b.column, prefetch.next());
}

void run_block(const GemmTile& t, const PanelBlock& b) {
  const bool last = b.begin + b.depth == t.k;
  if (last && b.column + kNr <= t.col_end)
    return with_activation(t.epilogue.act, [&]<Activation kAct>() { finish_panel<kAct>(t, b); });
  multiply_panel(t.a + b.begin, t.lda, t.rows, t.packed + b.column * t.k + b.begin * kNr,
                 t.col_end - b.column, b.depth, b.begin > 0, b.waiting, kNr, b.following);
  if (last) finish_columns(t, b.waiting, kNr, b.column, t.col_end);
}

}  // namespace

void pack_weights(const float* w, int64_t n, int64_t k, float* packed) {
  pack_rows(w, k, n, k, packed);
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
      const bool more_columns = column + kNr < t.col_end, more_blocks = begin + depth < t.k;
      const float* following = more_columns  ? t.packed + (column + kNr) * t.k + begin * kNr
                               : more_blocks ? t.packed + t.col_begin * t.k + (begin + depth) * kNr
                                             : t.next;
      float* waiting = blocks > 1 ? t.scratch + (column - t.col_begin) * t.rows : t.scratch;
      run_block(t, {column, begin, depth, waiting, following});
    }
  }
}

constinit const GemmTable kGemm = {
    .packed_elems = packed_elems,
    .pack_weights = pack_weights,
    .gemm_scratch_elems = gemm_scratch_elems,
    .gemm_tile = gemm_tile,
    .finish_tile = finish_tile,
};

}  // namespace vitrail::cpu::VT_ISA
