// Matrices as e4m3 codes with one scale per row or column, for GEMMs in fp8: the least power of two that
// brings the largest magnitude to 448 or less. So a code's own value does not depend on its row's scale, but
// where it is almost zero. The scale is 0 where all values are almost zero, and NaN where one is not finite.
#pragma once

#include "backend/cuda/api/gemms.h"

namespace vitrail::cuda {

// The longest row that is rounded in one pass; the length of a row is a multiple of 16 elements.
inline constexpr int64_t kLongestFp8Row = 16384;

// The e4m3 codes, and one scale per row of them. The norm of each row, before it is rounded, is wanted where
// a result's bound is (BoundedCodes).
struct Fp8Matrix {
  uint8_t* codes = nullptr;
  float* scales = nullptr;
  float* norms = nullptr;  // null: none are wanted
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

// tops = the largest of `norms`, and the largest magnitude of `bias`, each of n elements; without a bias 0.
struct Fp8TopsCall {
  int64_t n = 0;
  const float* norms = nullptr;
  Operand bias = {};
  float* tops = nullptr;
};

struct Fp8Api {
  void (*quantize_rows)(Session&, const Fp8RowsCall&);
  void (*find_tops)(Session&, const Fp8TopsCall&);
  void (*quantize_columns)(Session&, const Fp8ColumnsCall&);
};

}  // namespace vitrail::cuda
