// The vector functions of low-precision GEMMs and of conversions at one instruction set, and what they
// take: GEMMs of rounded f32 values (bf16, int8, or f32 by parts in bf16), GEMMs of bf16 tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/gemm/table.h"

namespace vitrail::cpu {

// 16-bit floats as raw patterns.
enum class Float16 { kF16, kBF16 };

struct ConvertTable {
  void (*widen)(Float16 from, const uint16_t* x, int64_t count, float* y);
  void (*narrow)(Float16 to, const float* x, int64_t count, uint16_t* y);  // to nearest even
};

// A GEMM in another form than f32: rows of A and the weight are rounded to it, or cut into parts, first.
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

// The reduced GEMMs of one arithmetic; all null where a level has none.
struct LowpKernels {
  int row_step = 0, cols = 0;  // a tile begins at a row that is a multiple of row_step, and a column of cols
  int64_t (*packed_bytes)(int64_t n, int64_t k) = nullptr;
  // Columns [first, first + count) of w row-major [n, k], first a multiple of cols; packed: the whole weight.
  void (*pack)(const float* w, int64_t n, int64_t first, int64_t count, int64_t k,
               std::byte* packed) = nullptr;
  // Row r of A, a multiple of row_step, is prepared r * row_bytes after the first; in between they may lie in
  // any order, with room for whole row steps. A call of prepare_rows begins with such a row and ends before
  // another, or with the last.
  int64_t (*row_bytes)(int64_t k) = nullptr;
  void (*prepare_rows)(const float* x, int64_t ldx, int64_t rows, int64_t k, std::byte* out,
                       float* row_scale) = nullptr;
  int64_t (*tile_scratch_bytes)(int64_t rows, int64_t cols, int64_t k) = nullptr;
  void (*tile)(const LowpTile&) = nullptr;
};

// A GEMM of bf16 tensors as they lie, rounded to bf16 after each of its steps.
struct Bf16TensorTile {
  // a: rows of bf16, zero from k to a multiple of 32, row_bytes apart; of the epilogue bias and residual
  // alone.
  LowpTile gemm;
  uint16_t* out = nullptr;  // row 0, column 0 of the result in bf16; null: in f32, to GEMM.c
};

// GEMMs of bf16 tensors; all null where a level has none. Weights are packed as LowpKernels' of bf16.
struct Bf16TensorKernels {
  int row_step = 0;  // rows of a tile are best a multiple
  // Columns [first, first + count) of a weight that lies as w[n, k], or as w[k, n]; first a multiple of cols.
  void (*pack_rows)(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                    std::byte* packed) = nullptr;
  void (*pack_matrix)(const uint16_t* w, int64_t n, int64_t first, int64_t count, int64_t k,
                      std::byte* packed) = nullptr;
  // y[cols, rows] = x[rows, cols]^T, rows of y filled up with zeros to a multiple of 32.
  void (*transpose)(const uint16_t* x, int64_t ldx, int64_t rows, int64_t cols, uint16_t* y,
                    int64_t ldy) = nullptr;
  // c = residual + bf16(bf16(sum) + bias)
  void (*tile)(const Bf16TensorTile&) = nullptr;
  // c = epilogue(sum) in f32; a as Bf16TensorTile's.
  void (*wide_tile)(const LowpTile&) = nullptr;
};

}  // namespace vitrail::cpu
