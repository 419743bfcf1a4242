// Defines what the dot-product kernels share: rows of A and weights rounded to bf16 or int8, or split into
// bf16 parts, and laid out in 4-byte words; the order of the loops over a tile; and the way from sums to C.
//
// A row of A is its k rounded values, padded with zeros to whole steps of 64 bytes; with several parts, a
// step of each part in turn. Rows are stored one after the other, or by tiles: the first steps of 16 rows,
// then their second ones, so that what is read together is adjacent and does not share few sets of a cache. A
// weight is stored by panels of 32 columns; a panel is [step][part][half of 16 columns][word of the
// step][column]: 64 bytes hold the same word of 16 columns, which is one row of an AMX tile and one vector,
// and these are stored in the order they are read. The panels of an int8 weight are preceded by its scales
// and 128 times its columns' sums, both [columns].
#pragma once

#include "backend/cpu/isa/table.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {

inline constexpr int64_t kStepBytes = 64;
inline constexpr int64_t kStepWords = kStepBytes / 4;
inline constexpr int64_t kPanelCols = 32;
inline constexpr int64_t kPanelStepBytes = kPanelCols * kStepBytes;

// An arithmetic (called Form in templates): the bytes of a part of a value, the number of parts, and the
// bytes per column that precede the panels.
struct Bf16 {
  static constexpr int64_t kBytes = 2, kParts = 1, kColumnBytes = 0;
};
struct Int8 {
  static constexpr int64_t kBytes = 1, kParts = 1, kColumnBytes = 8;
};
// An f32 as the sum of three bf16, which hold all of its 24 bits.
struct Split {
  static constexpr int64_t kBytes = 2, kParts = 3, kColumnBytes = 0;
};

template <typename Form>
int64_t row_bytes(int64_t k) {
  return Form::kParts * round_up(k * Form::kBytes, kStepBytes);
}
template <typename Form>
int64_t packed_bytes(int64_t n, int64_t k) {
  return round_up(n, kPanelCols) * (Form::kColumnBytes + row_bytes<Form>(k));
}
// The panel whose first column is `column`.
template <typename Form>
const std::byte* panel_of(const std::byte* packed, int64_t n, int64_t k, int64_t column) {
  return packed + round_up(n, kPanelCols) * Form::kColumnBytes + column * row_bytes<Form>(k);
}
int64_t tile_scratch_bytes(int64_t rows, int64_t cols, int64_t k);

// The bytes from a row to the next within a block of 16, from a step to the next, and from a block to the
// next.
inline constexpr int64_t kRowBlock = 16;
struct RowOrder {
  int64_t row, step, block;
};
inline RowOrder one_by_one(int64_t row_bytes) {
  return {row_bytes, kStepBytes, kRowBlock * row_bytes};
}
inline RowOrder by_tiles(int64_t row_bytes) {
  return {kStepBytes, kRowBlock * kStepBytes, kRowBlock * row_bytes};
}
// The order in which this instruction set's rows are prepared.
RowOrder prepared_order(int64_t row_bytes);

void pack_bf16(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed);
void pack_int8(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed);
void pack_split(const float* w, int64_t n, int64_t first, int64_t count, int64_t k, std::byte* packed);
void prepare_bf16(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale);
void prepare_int8(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale);
void prepare_split(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale);
// Writes values q + 128, unsigned.
void prepare_uint8(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out, float* row_scale);

void pack_bf16_tensor_rows(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                           std::byte* packed);
void pack_bf16_tensor_matrix(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                             std::byte* packed);
void transpose_bf16(const uint16_t* x, int64_t ldx, int64_t rows, int64_t cols, uint16_t* y, int64_t ldy);

// One visit to the sums of a panel: sums[rows, kPanelCols] = a * panel over `steps` steps, or += with `add`.
struct PanelVisit {
  const std::byte *a, *panel;
  int64_t steps, column;
  bool add, last;  // last: the sums are complete after it
  float* sums;
};

// Calls visit(PanelVisit) for the rows of the tile from `first`, a multiple of kRowBlock, on. A visit has at
// most `most_steps` steps of 64 bytes, with all parts.
template <typename Form, typename Visit>
void for_visits(const LowpTile& t, const RowOrder& order, int64_t first, int64_t most_steps,
                const Visit& visit) {
  const int64_t all = row_bytes<Form>(t.k) / (Form::kParts * kStepBytes),
                block = ceil_div(all, ceil_div(all, most_steps / Form::kParts));
  const std::byte* a = t.a + first / kRowBlock * order.block;
  for (int64_t step = 0; step < all; step += block) {
    for (int64_t column = t.col_begin; column < t.col_end; column += kPanelCols) {
      const std::byte* panel = panel_of<Form>(t.packed, t.n, t.k, column);
      visit({.a = a + step * Form::kParts * order.step,
             .panel = panel + step * Form::kParts * kPanelStepBytes,
             .steps = min64(block, all - step),
             .column = column,
             .add = step > 0,
             .last = step + block >= all,
             .sums = t.scratch + (column - t.col_begin) * t.rows + first * kPanelCols});
    }
  }
}

// Runs the epilogue on sums[rows, kPanelCols] of the panel at `column`, rows [first, first + rows) of the
// tile, and writes C. `offset`: the values of A were stored with 128 added.
void finish_bf16(const LowpTile& t, int64_t column, int64_t first, int64_t rows, float* sums);
void finish_int8(const LowpTile& t, int64_t column, int64_t first, int64_t rows, float* sums, bool offset);
void finish_bf16_tensor(const Bf16TensorTile& h, int64_t column, int64_t first, int64_t rows,
                        const float* sums);
template <typename Form>
void finish(const LowpTile& t, int64_t column, int64_t first, int64_t rows, float* sums,
            bool offset = false) {
  if constexpr (Form::kBytes == 2)
    finish_bf16(t, column, first, rows, sums);
  else
    finish_int8(t, column, first, rows, sums, offset);
}

// The table of an instruction set's GEMMs in one arithmetic.
template <typename Form>
constexpr LowpKernels gemms(int row_step, decltype(pack_bf16) pack, decltype(prepare_bf16) prepare,
                            void (*tile)(const LowpTile&)) {
  return {.row_step = row_step,
          .cols = kPanelCols,
          .packed_bytes = packed_bytes<Form>,
          .pack = pack,
          .row_bytes = row_bytes<Form>,
          .prepare_rows = prepare,
          .tile_scratch_bytes = tile_scratch_bytes,
          .tile = tile};
}

}  // namespace vitrail::cpu::VT_ISA
