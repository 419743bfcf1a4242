// Matrices as e4m3 codes with one scale per row or column, for GEMMs in fp8: scale = largest magnitude / 448.
// The scale is 0 where all values are almost zero, and NaN where one is not finite.
#pragma once

#include "backend/cuda/api/gemms.h"

namespace vitrail::cuda {

// The longest row that is rounded in one pass; the length of a row is a multiple of 16 elements.
inline constexpr int64_t kLongestFp8Row = 16384;

// The e4m3 codes, and one scale per row of them.
struct Fp8Matrix {
  uint8_t* codes = nullptr;
  float* scales = nullptr;
};

// Rounds each row of x [rows, width] after a fused op: a layernorm (weight, bias and eps), or act(x + bias)
// where there is an activation. The result of that op is first rounded to `as`, the type it would have had in
// memory.
struct Fp8RowsCall {
  int64_t rows = 0, width = 0;
  Operand x;
  Operand norm_weight = {}, bias = {};  // of width; no data: none
  float eps = 0;
  Activation act = Activation::kNone;
  DType as = DType::kF32;
  Fp8Matrix out;
};

// The number of rows of x in which one block finds the largest magnitude of each column.
inline constexpr int64_t kFp8SliceRows = 128;
constexpr int64_t fp8_slices(int64_t rows) {
  return (rows + kFp8SliceRows - 1) / kFp8SliceRows;
}

// Rounds each column of x [rows, columns], which becomes a row of codes: out is [columns, rows].
struct Fp8ColumnsCall {
  int64_t rows = 0, columns = 0;
  Operand x;
  uint32_t* tops = nullptr;  // one per column and slice of kFp8SliceRows rows
  Fp8Matrix out;
};

struct Fp8Api {
  void (*quantize_rows)(Session&, const Fp8RowsCall&);
  void (*quantize_columns)(Session&, const Fp8ColumnsCall&);
};

}  // namespace vitrail::cuda
