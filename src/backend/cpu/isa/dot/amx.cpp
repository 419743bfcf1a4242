// Products by AMX tiles: four of sums (32 rows x 32 columns), two of A, two of the weight. Each pair of a row
// and a column is summed in the same order wherever it falls, whole tiles or not.
#include "backend/cpu/isa/dot/amx.h"

#include "backend/cpu/isa/dot/kernels.h"
#include "backend/cpu/isa/dot/words.h"

namespace vitrail::VT_ISA {
namespace {

constexpr int64_t kBlockRows = 2 * kTileRows;
constexpr int64_t kSumsStride = kPanelCols * 4, kSumsBlock = kTileRows * kPanelCols;  // bytes; floats
// Of a visit to the sums, which costs more than a panel's part that leaves L1.
constexpr int64_t kMostSteps = 24;
// Rows that lie one by one may be cut finer than tiles: tasks of unequal size cost more than a tile of few.
constexpr int kHalfRowStep = 8;
static_assert(kTileRows == kRowBlock);
enum Tile { kC00, kC01, kC10, kC11, kA0, kA1, kB0, kB1 };

// Tiles for blocks of up to 32 rows.
void configure(int64_t rows) {
  TileShapes shapes;
  const int64_t top = min64(rows, kTileRows), bottom = rows - top;
  shapes.set(kC00, top), shapes.set(kC01, top), shapes.set(kA0, top);
  shapes.set(kC10, bottom), shapes.set(kC11, bottom), shapes.set(kA1, bottom);
  shapes.set(kB0, kTileRows), shapes.set(kB1, kTileRows);
  tile_configure(shapes);
}

template <typename Form, int kC, int kA, int kB>
inline void dot() {
  if constexpr (Form::kBytes == 2)
    tile_dot_bf16<kC, kA, kB>();
  else
    tile_dot_int8<kC, kA, kB>();
}

template <int kLeft, int kRight>
inline void begin_sums(bool add, const float* sums) {
  if (add) {
    tile_load<kLeft>(sums, kSumsStride);
    tile_load<kRight>(sums + kTileRows, kSumsStride);
  } else {
    tile_zero<kLeft>();
    tile_zero<kRight>();
  }
}

template <int kLeft, int kRight>
inline void end_sums(float* sums) {
  tile_store<kLeft>(sums, kSumsStride);
  tile_store<kRight>(sums + kTileRows, kSumsStride);
}

template <bool kTwo>
inline void load_rows(const std::byte* a, const RowOrder& order) {
  tile_load<kA0>(a, order.row);
  if constexpr (kTwo) tile_load<kA1>(a + order.block, order.row);
}
inline void load_columns(const std::byte* panel) {
  tile_load<kB0>(panel, kTileRowBytes);
  tile_load<kB1>(panel + kPanelStepBytes / 2, kTileRowBytes);
}
template <bool kTwo>
inline void dot_all() {
  tile_dot_bf16<kC00, kA0, kB0>();
  tile_dot_bf16<kC01, kA0, kB1>();
  if constexpr (kTwo) {
    tile_dot_bf16<kC10, kA1, kB0>();
    tile_dot_bf16<kC11, kA1, kB1>();
  }
}

// One step of values in one part.
template <typename Form, bool kTwo>
inline void add_step(const std::byte* a, const RowOrder& order, const std::byte* panel) {
  tile_load<kB0>(panel, kTileRowBytes);
  tile_load<kA0>(a, order.row);
  dot<Form, kC00, kA0, kB0>();
  tile_load<kB1>(panel + kPanelStepBytes / 2, kTileRowBytes);
  dot<Form, kC01, kA0, kB1>();
  if constexpr (kTwo) {
    tile_load<kA1>(a + order.block, order.row);
    dot<Form, kC10, kA1, kB0>();
    dot<Form, kC11, kA1, kB1>();
  }
}

// One step of values in three parts, high, middle and low: all products of parts but the three smallest,
// which together are less than the last bit of an f32 product. The small ones first, so that they are not
// lost, and such that every load serves as many as can be.
template <bool kTwo>
inline void add_split_step(const std::byte* a, const RowOrder& order, const std::byte* panel) {
  constexpr int64_t kMiddle = 1, kLow = 2;
  load_rows<kTwo>(a, order);
  load_columns(panel + kLow * kPanelStepBytes), dot_all<kTwo>();
  load_columns(panel + kMiddle * kPanelStepBytes), dot_all<kTwo>();
  load_rows<kTwo>(a + kMiddle * order.step, order), dot_all<kTwo>();
  load_columns(panel), dot_all<kTwo>();
  load_rows<kTwo>(a + kLow * order.step, order), dot_all<kTwo>();
  load_rows<kTwo>(a, order), dot_all<kTwo>();
}

// Where a result lies: rows of values of so many bytes.
struct Result {
  const std::byte* first;
  int64_t row_bytes, value_bytes;
};
Result result_of(const ReducedTile& t) {
  return {reinterpret_cast<const std::byte*>(t.c), t.ldc * 4, 4};
}
Result result_of(const HalfTile& h) {
  if (!h.out) return result_of(h.product);
  return {reinterpret_cast<const std::byte*>(h.out), h.product.ldc * 2, 2};
}

// Lines of a result, fetched some rows with each step of the last visit: without that the stores wait for
// them.
struct Ahead {
  const std::byte* first = nullptr;
  int64_t row_bytes = 0, bytes = 0, rows = 0;  // bytes of a row to fetch
  int64_t pace = 0, row = 0;

  void fetch() {
    for (const int64_t end = min64(row + pace, rows); row < end; ++row)
      for (int64_t at = 0; at < bytes; at += kTileRowBytes)
        __builtin_prefetch(first + row * row_bytes + at, 1);
  }
};

// sums (+)= a * panel for one block of rows; kTwo: it has more than 16.
template <typename Form, bool kTwo>
void multiply_block(const PanelVisit& v, const std::byte* a, const RowOrder& order, float* sums,
                    Ahead& ahead) {
  begin_sums<kC00, kC01>(v.add, sums);
  if constexpr (kTwo) begin_sums<kC10, kC11>(v.add, sums + kSumsBlock);
  const std::byte* panel = v.panel;
  for (int64_t step = 0; step < v.steps; ++step) {
    if constexpr (Form::kParts == 1)
      add_step<Form, kTwo>(a, order, panel);
    else
      add_split_step<kTwo>(a, order, panel);
    ahead.fetch();
    a += Form::kParts * order.step, panel += Form::kParts * kPanelStepBytes;
  }
  end_sums<kC00, kC01>(sums);
  if constexpr (kTwo) end_sums<kC10, kC11>(sums + kSumsBlock);
}

// Rows [first, first + rows) of a tile: whole blocks, or one of fewer rows. finish(column, first, rows, sums)
// for each panel.
template <typename Form, typename Finish>
void sum_rows_of(const ReducedTile& t, const RowOrder& order, const Result& result, int64_t first,
                 int64_t rows, const Finish& finish) {
  if (rows == 0) return;
  configure(min64(rows, kBlockRows));
  const auto block = rows > kTileRows ? multiply_block<Form, true> : multiply_block<Form, false>;
  for_visits<Form>(t, order, first, kMostSteps, [&](const PanelVisit& v) {
    for (int64_t r = 0; r < rows; r += kBlockRows) {
      const int64_t count = min64(kBlockRows, rows - r), cols = min64(kPanelCols, t.col_end - v.column);
      Ahead ahead;
      if (v.last)
        ahead = {result.first + (first + r) * result.row_bytes + v.column * result.value_bytes,
                 result.row_bytes, cols * result.value_bytes, count, ceil_div(count, v.steps)};
      block(v, v.a + r / kTileRows * order.block, order, v.sums + r * kPanelCols, ahead);
    }
    if (v.last) finish(v.column, first, rows, v.sums);
  });
}

template <typename Form, typename Finish>
void sum(const ReducedTile& t, const RowOrder& order, const Result& result, const Finish& finish) {
  const int64_t whole = t.rows / kBlockRows * kBlockRows;
  sum_rows_of<Form>(t, order, result, 0, whole, finish);
  sum_rows_of<Form>(t, order, result, whole, t.rows - whole, finish);
  tile_release();
}

template <typename Form>
void tile_in_order(const ReducedTile& t, const RowOrder& order) {
  sum<Form>(t, order, result_of(t), [&](int64_t column, int64_t first, int64_t rows, float* sums) {
    if constexpr (Form::kBytes == 2)
      finish_bf16(t, column, first, rows, sums);
    else
      finish_int8(t, column, first, rows, sums, false);
  });
}

template <typename Form>
void tile(const ReducedTile& t) {
  tile_in_order<Form>(t, by_tiles(t.row_bytes));
}

void wide_tile(const ReducedTile& t) {
  tile_in_order<Bf16>(t, one_by_one(t.row_bytes));
}

void half_tile(const HalfTile& t) {
  sum<Bf16>(t.product, one_by_one(t.product.row_bytes), result_of(t),
            [&](int64_t column, int64_t first, int64_t rows, float* sums) {
              finish_halves(t, column, first, rows, sums);
            });
}

template <typename Form>
constexpr ReducedKernels products(decltype(pack_bf16) pack, decltype(prepare_bf16) prepare) {
  return {.row_step = kTileRows,
          .cols = kPanelCols,
          .packed_bytes = packed_bytes<Form>,
          .pack = pack,
          .row_bytes = row_bytes<Form>,
          .prepare_rows = prepare,
          .tile_scratch_bytes = tile_scratch_bytes,
          .tile = tile<Form>};
}

}  // namespace

RowOrder prepared_order(int64_t row_bytes) {
  return by_tiles(row_bytes);
}

constinit const ReducedKernels kBf16Products = products<Bf16>(pack_bf16, prepare_bf16);
constinit const ReducedKernels kInt8Products = products<Int8>(pack_int8, prepare_int8);
constinit const ReducedKernels kSplitProducts = products<Split>(pack_split, prepare_split);
constinit const HalfKernels kHalfProducts = {.row_step = kHalfRowStep,
                                             .pack_rows = pack_half_rows,
                                             .pack_matrix = pack_half_matrix,
                                             .transpose = transpose_halves,
                                             .tile = half_tile,
                                             .wide_tile = wide_tile};

}  // namespace vitrail::VT_ISA
