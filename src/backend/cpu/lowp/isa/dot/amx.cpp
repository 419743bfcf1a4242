// GEMMs by AMX tiles: four tiles of sums (32 rows x 32 columns), two of A, two of the weight. Each pair of a
// row and a column is summed in the same order wherever it falls, in a whole tile or a partial one.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/lowp/isa/dot/amx_block.h"
#include "backend/cpu/lowp/isa/dot/layout.h"

namespace vitrail::cpu::VT_ISA {
namespace {

constexpr int64_t kBlockRows = 2 * kTileRows;
// The steps of one visit to the sums. Loading and storing the sums costs more than a part of a panel that no
// longer fits L1.
constexpr int64_t kMostSteps = 24;
// bf16 rows that are stored one after the other may be cut finer than tiles: tasks of unequal size cost more
// than a tile of few rows.
constexpr int kBf16RowStep = 8;

// Says where a result is stored: its first row, the bytes between rows and the bytes of a value.
struct Result {
  const std::byte* first;
  int64_t row_bytes, value_bytes;
};
Result result_of(const LowpTile& t) {
  return {reinterpret_cast<const std::byte*>(t.c), t.ldc * 4, 4};
}
Result result_of(const Bf16TensorTile& h) {
  if (!h.out) return result_of(h.gemm);
  return {reinterpret_cast<const std::byte*>(h.out), h.gemm.ldc * 2, 2};
}

// The cache lines of a result, some rows of which are prefetched with each step of the last visit; without
// that the stores would wait for them.
struct Prefetch {
  const std::byte* first = nullptr;
  int64_t row_bytes = 0, bytes = 0, rows = 0;  // bytes of a row to fetch
  int64_t pace = 0, row = 0;

  void fetch() {
    for (const int64_t end = min64(row + pace, rows); row < end; ++row)
      for (int64_t at = 0; at < bytes; at += kTileRowBytes)
        __builtin_prefetch(first + row * row_bytes + at, 1);
  }
};

// sums (+)= a * panel for one block of rows; kTwo: the block has more than 16 rows.
template <typename Form, bool kTwo>
void multiply_block(const PanelVisit& v, const std::byte* a, const RowOrder& order, float* sums,
                    Prefetch& prefetch) {
  begin_sums<kTwo>(v.add, sums);
  const std::byte* panel = v.panel;
  for (int64_t step = 0; step < v.steps; ++step) {
    add_step<Form, kTwo>(a, order, panel);
    prefetch.fetch();
    a += Form::kParts * order.step;
    panel += Form::kParts * kPanelStepBytes;
  }
  end_sums<kTwo>(sums);
}

// Computes rows [first, first + rows) of a tile: whole blocks, or one block of fewer rows. Calls
// finish(column, first, rows, sums) for each panel.
template <typename Form, typename Finish>
void sum_rows_of(const LowpTile& t, const RowOrder& order, const Result& result, int64_t first, int64_t rows,
                 const Finish& finish) {
  if (rows == 0) return;
  configure(min64(rows, kBlockRows));
  const auto block = rows > kTileRows ? multiply_block<Form, true> : multiply_block<Form, false>;
  for_visits<Form>(t, order, first, kMostSteps, [&](const PanelVisit& v) {
    for (int64_t r = 0; r < rows; r += kBlockRows) {
      const int64_t count = min64(kBlockRows, rows - r), cols = min64(kPanelCols, t.col_end - v.column);
      Prefetch prefetch;
      if (v.last)
        prefetch = {result.first + (first + r) * result.row_bytes + v.column * result.value_bytes,
                    result.row_bytes, cols * result.value_bytes, count, ceil_div(count, v.steps)};
      block(v, v.a + r / kTileRows * order.block, order, v.sums + r * kPanelCols, prefetch);
    }
    if (v.last) finish(v.column, first, rows, v.sums);
  });
}

template <typename Form, typename Finish>
void sum(const LowpTile& t, const RowOrder& order, const Result& result, const Finish& finish) {
  const int64_t whole = t.rows / kBlockRows * kBlockRows;
  sum_rows_of<Form>(t, order, result, 0, whole, finish);
  sum_rows_of<Form>(t, order, result, whole, t.rows - whole, finish);
  tile_release();
}

template <typename Form>
void tile_in_order(const LowpTile& t, const RowOrder& order) {
  sum<Form>(t, order, result_of(t), [&](int64_t column, int64_t first, int64_t rows, float* sums) {
    finish<Form>(t, column, first, rows, sums);
  });
}

template <typename Form>
void tile(const LowpTile& t) {
  tile_in_order<Form>(t, by_tiles(t.row_bytes));
}

void wide_tile(const LowpTile& t) {
  tile_in_order<Bf16>(t, one_by_one(t.row_bytes));
}

void bf16_tensor_tile(const Bf16TensorTile& t) {
  sum<Bf16>(t.gemm, one_by_one(t.gemm.row_bytes), result_of(t),
            [&](int64_t column, int64_t first, int64_t rows, float* sums) {
              finish_bf16_tensor(t, column, first, rows, sums);
            });
}

}  // namespace

RowOrder prepared_order(int64_t row_bytes) {
  return by_tiles(row_bytes);
}

constinit const LowpKernels kBf16Gemms = gemms<Bf16>(kTileRows, pack_bf16, prepare_bf16, tile<Bf16>);
constinit const LowpKernels kInt8Gemms = gemms<Int8>(kTileRows, pack_int8, prepare_int8, tile<Int8>);
constinit const LowpKernels kSplitGemms = gemms<Split>(kTileRows, pack_split, prepare_split, tile<Split>);
constinit const Bf16TensorKernels kBf16TensorGemms = {.row_step = kBf16RowStep,
                                                      .pack_rows = pack_bf16_tensor_rows,
                                                      .pack_matrix = pack_bf16_tensor_matrix,
                                                      .transpose = transpose_bf16,
                                                      .tile = bf16_tensor_tile,
                                                      .wide_tile = wide_tile};

}  // namespace vitrail::cpu::VT_ISA
