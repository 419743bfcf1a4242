// The table of the vector functions of low-precision GEMMs and of conversions at one instruction set, and
// their arguments: GEMMs of rounded f32 values (bf16, int8, or f32 by bf16 parts), GEMMs of bf16 tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/gemm/table.h"

namespace vitrail::cpu {

// The 16-bit floats, stored as raw bits in uint16_t.
enum class Float16 { kF16, kBF16 };

struct ConvertTable {
  void (*widen)(Float16 from, const uint16_t* x, int64_t count, float* y);
  void (*narrow)(Float16 to, const float* x, int64_t count, uint16_t* y);  // to nearest even
};

// A tile of a GEMM in another arithmetic than f32: rows of A and the weight are first rounded to it, or split
// into parts.
struct LowpTile {
  const std::byte* a = nullptr;  // rows made by prepare_rows, the first a multiple of row_step
  int64_t row_bytes = 0;
  const float* row_scale = nullptr;   // [rows], what a row's values were divided by; null: nothing (bf16)
  const std::byte* packed = nullptr;  // the whole weight, made by pack (its own scales inside)
  float* c = nullptr;                 // row 0, column 0 of the whole width
  int64_t ldc = 0;
  int64_t rows = 0, n = 0, k = 0;
  int64_t col_begin = 0, col_end = 0;  // col_begin a multiple of `cols`
  Epilogue epilogue;
  float* scratch = nullptr;  // tile_scratch_bytes(rows, cols, k), 64-byte aligned
};

// The low-precision GEMMs of one arithmetic; all null where an instruction set has none.
struct LowpKernels {
  int row_step = 0, cols = 0;  // a tile begins at a multiple of row_step rows and of cols columns
  int64_t (*packed_bytes)(int64_t n, int64_t k) = nullptr;
  // Packs columns [first, first + count) of w row-major [n, k], first a multiple of cols; `packed` is the
  // whole weight.
  void (*pack)(const float* w, int64_t n, int64_t first, int64_t count, int64_t k,
               std::byte* packed) = nullptr;
  // Row r of A, for r a multiple of row_step, is prepared r * row_bytes after the first; the rows in between
  // may be stored in any order, with room for whole row steps. A call of prepare_rows begins at a multiple of
  // row_step and ends before another one, or with the last row.
  int64_t (*row_bytes)(int64_t k) = nullptr;
  void (*prepare_rows)(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out,
                       float* row_scale) = nullptr;
  int64_t (*tile_scratch_bytes)(int64_t rows, int64_t cols, int64_t k) = nullptr;
  void (*tile)(const LowpTile&) = nullptr;
};

// A tile of a GEMM of bf16 tensors, read in place and rounded to bf16 after each step of the epilogue.
struct Bf16TensorTile {
  // gemm.a has rows of bf16, zero from k to a multiple of 32, row_bytes apart; the epilogue has a bias and a
  // residual only.
  LowpTile gemm;
  uint16_t* out = nullptr;  // row 0, column 0 of the result in bf16; null: in f32, to gemm.c
};

// The GEMMs of bf16 tensors; all null where an instruction set has none. Weights are packed like those of the
// bf16 LowpKernels.
struct Bf16TensorKernels {
  int row_step = 0;  // the rows of a tile are best a multiple of it
  // Packs columns [first, first + count) of a weight stored as w[n, k], or as w[k, n]; first is a multiple of
  // cols.
  void (*pack_rows)(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                    std::byte* packed) = nullptr;
  void (*pack_matrix)(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                      std::byte* packed) = nullptr;
  // y[cols, rows] = x[rows, cols]^T; the rows of y are padded with zeros to a multiple of 32.
  void (*transpose)(const uint16_t* x, int64_t ldx, int64_t rows, int64_t cols, uint16_t* y,
                    int64_t ldy) = nullptr;
  // c = residual + bf16(bf16(sum) + bias)
  void (*tile)(const Bf16TensorTile&) = nullptr;
  // c = epilogue(sum) in f32; a is that of Bf16TensorTile.
  void (*wide_tile)(const LowpTile&) = nullptr;
};

}  // namespace vitrail::cpu
