// A block of 32 rows x 32 columns of sums in four AMX tile registers, and one step of a GEMM added to it,
// with two tiles of A and two of the weight. kTwo: the block has more than 16 rows.
#pragma once

#include "backend/cpu/lowp/isa/dot/amx.h"
#include "backend/cpu/lowp/isa/dot/layout.h"

namespace vitrail::cpu::VT_ISA {

static_assert(kTileRows == kRowBlock);
inline constexpr int64_t kBlockRows = 2 * kTileRows;
enum Tile { kC00, kC01, kC10, kC11, kA0, kA1, kB0, kB1 };

// Configures the tile registers for blocks of up to 32 rows.
inline void configure(int64_t rows) {
  TileShapes shapes;
  const int64_t top = min64(rows, kTileRows), bottom = rows - top;
  shapes.set(kC00, top);
  shapes.set(kC01, top);
  shapes.set(kA0, top);
  shapes.set(kC10, bottom);
  shapes.set(kC11, bottom);
  shapes.set(kA1, bottom);
  shapes.set(kB0, kTileRows);
  shapes.set(kB1, kTileRows);
  tile_configure(shapes);
}

inline constexpr int64_t kSumsStride = kPanelCols * 4, kSumsBlock = kTileRows * kPanelCols;  // bytes; floats

template <bool kTwo>
inline void begin_sums(bool add, const float* sums) {
  if (!add) {
    tile_zero<kC00>();
    tile_zero<kC01>();
    if constexpr (!kTwo) return;
    tile_zero<kC10>();
    tile_zero<kC11>();
    return;
  }
  tile_load<kC00>(sums, kSumsStride);
  tile_load<kC01>(sums + kTileRows, kSumsStride);
  if constexpr (!kTwo) return;
  tile_load<kC10>(sums + kSumsBlock, kSumsStride);
  tile_load<kC11>(sums + kSumsBlock + kTileRows, kSumsStride);
}

template <bool kTwo>
inline void end_sums(float* sums) {
  tile_store<kC00>(sums, kSumsStride);
  tile_store<kC01>(sums + kTileRows, kSumsStride);
  if constexpr (!kTwo) return;
  tile_store<kC10>(sums + kSumsBlock, kSumsStride);
  tile_store<kC11>(sums + kSumsBlock + kTileRows, kSumsStride);
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

template <typename Form, int kC, int kA, int kB>
inline void dot() {
  if constexpr (Form::kBytes == 2)
    tile_dot_bf16<kC, kA, kB>();
  else
    tile_dot_int8<kC, kA, kB>();
}
template <typename Form, bool kTwo>
inline void dot_all() {
  dot<Form, kC00, kA0, kB0>();
  dot<Form, kC01, kA0, kB1>();
  if constexpr (!kTwo) return;
  dot<Form, kC10, kA1, kB0>();
  dot<Form, kC11, kA1, kB1>();
}

// Adds one step to the sums. For values in three parts (high, middle, low) it adds all products of parts but
// the three smallest, which together are less than the last bit of an f32 product. Small products come first,
// so that they are not lost, and the order lets every load serve as many products as possible.
template <typename Form, bool kTwo>
inline void add_step(const std::byte* a, const RowOrder& order, const std::byte* panel) {
  constexpr int64_t kMiddle = 1, kLow = 2;
  const auto dots = dot_all<Form, kTwo>;
  load_rows<kTwo>(a, order);
  if constexpr (Form::kParts == 1) {
    load_columns(panel);
    dots();
  } else {
    load_columns(panel + kLow * kPanelStepBytes);
    dots();
    load_columns(panel + kMiddle * kPanelStepBytes);
    dots();
    load_rows<kTwo>(a + kMiddle * order.step, order);
    dots();
    load_columns(panel);
    dots();
    load_rows<kTwo>(a + kLow * order.step, order);
    dots();
    load_rows<kTwo>(a, order);
    dots();
  }
}

}  // namespace vitrail::cpu::VT_ISA
