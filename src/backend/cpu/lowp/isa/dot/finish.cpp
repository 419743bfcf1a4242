// The epilogues of dot-product GEMMs: from sums to C.
#include <cstring>

#include "backend/cpu/lowp/isa/dot/layout.h"
#include "backend/cpu/lowp/isa/dot/rounding.h"

namespace vitrail::cpu::VT_ISA {
namespace {

// The f32 kernels that this instruction set shares with AVX-512.
const IsaKernels& f32() {
  return VT_F32_ISA::kernels();
}

// The f32 tile of some rows and one panel of a low-precision tile; t.c may be null.
GemmTile part_of(const LowpTile& t, int64_t column, int64_t first, int64_t rows) {
  GemmTile part{.ldc = t.ldc, .rows = rows, .n = t.n, .k = t.k, .epilogue = t.epilogue};
  if (t.c) part.c = t.c + first * t.ldc;
  part.col_begin = column;
  part.col_end = min64(column + kPanelCols, t.col_end);
  if (part.epilogue.residual) part.epilogue.residual += first * part.epilogue.residual_stride;
  return part;
}

}  // namespace

void finish_bf16(const LowpTile& t, int64_t column, int64_t first, int64_t rows, float* sums) {
  f32().finish_tile(part_of(t, column, first, rows), sums, kPanelCols);
}

void finish_int8(const LowpTile& t, int64_t column, int64_t first, int64_t rows, float* sums, bool offset) {
  const auto* scales = reinterpret_cast<const float*>(t.packed) + column;
  const auto* offsets = reinterpret_cast<const uint32_t*>(t.packed) + round_up(t.n, kPanelCols) + column;
  for (int64_t r = 0; r < rows; ++r) {
    float* row = sums + r * kPanelCols;
    uint32_t whole[kPanelCols];
    std::memcpy(whole, row, sizeof whole);
    if (offset)
      for (int64_t c = 0; c < kPanelCols; ++c) whole[c] -= offsets[c];
    for (int64_t c = 0; c < kPanelCols; ++c)
      row[c] = static_cast<float>(static_cast<int32_t>(whole[c])) * t.row_scale[first + r] * scales[c];
  }
  f32().finish_tile(part_of(t, column, first, rows), sums, kPanelCols);
}

void finish_bf16_tensor(const Bf16TensorTile& h, int64_t column, int64_t first, int64_t rows,
                        const float* sums) {
  const GemmTile part = part_of(h.gemm, column, first, rows);
  const Epilogue& e = part.epilogue;
  const int64_t cols = part.col_end - column;
  float bias[kPanelCols] = {}, value[kPanelCols];
  if (e.bias) std::memcpy(bias, e.bias + column, static_cast<size_t>(cols) * sizeof(float));
  for (int64_t r = 0; r < rows; ++r, sums += kPanelCols) {
    for (int64_t c = 0; c < kPanelCols; ++c) value[c] = to_bf16(sums[c]);
    if (e.bias)
      for (int64_t c = 0; c < kPanelCols; ++c) value[c] = to_bf16(value[c] + bias[c]);
    if (e.residual)
      for (int64_t c = 0; c < cols; ++c) value[c] += e.residual[r * e.residual_stride + column + c];
    if (h.out)
      for (int64_t c = 0; c < cols; ++c) h.out[(first + r) * part.ldc + column + c] = upper_half(value[c]);
    else
      std::memcpy(part.c + r * part.ldc + column, value, static_cast<size_t>(cols) * sizeof(float));
  }
}

}  // namespace vitrail::cpu::VT_ISA
