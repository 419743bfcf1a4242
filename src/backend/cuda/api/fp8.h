// Matrices as e4m3 codes with a scale a row or column, for GEMMs in fp8: scale = largest magnitude / 448.
// What is all but zero has scale 0, what holds a value that is not finite the scale not-a-number.
#pragma once

#include "backend/cuda/api/gemms.h"

namespace vitrail::cuda {

// The longest row that is rounded in one pass; rows are whole 16 elements.
inline constexpr int64_t kLongestFp8Row = 16384;

// The codes, and a scale a row of them.
struct Fp8Matrix {
  uint8_t* codes = nullptr;
  float* scales = nullptr;
};

// Each row of x [rows, width], through what its producer leaves to do: a layernorm (weight, bias and eps), or
// act(x + bias) where there is an activation. The result of that is rounded to `as` first, the type it would
// have had in memory.
struct Fp8RowsCall {
  int64_t rows = 0, width = 0;
  Operand x;
  Operand norm_weight = {}, bias = {};  // of width; no data: none
  float eps = 0;
  Activation act = Activation::kNone;
  DType as = DType::kF32;
  Fp8Matrix out;
};

// Rows of x that one block looks through for the largest of each column.
inline constexpr int64_t kFp8SliceRows = 128;
constexpr int64_t fp8_slices(int64_t rows) {
  return (rows + kFp8SliceRows - 1) / kFp8SliceRows;
}

// Each column of x [rows, columns], which becomes a row of codes: out is [columns, rows].
struct Fp8ColumnsCall {
  int64_t rows = 0, columns = 0;
  Operand x;
  uint32_t* tops = nullptr;  // one a column and slice of kFp8SliceRows rows
  Fp8Matrix out;
};

struct Fp8Api {
  void (*quantize_rows)(Session&, const Fp8RowsCall&);
  void (*quantize_columns)(Session&, const Fp8ColumnsCall&);
};

}  // namespace vitrail::cuda
