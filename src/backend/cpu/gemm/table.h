// The table of the vector functions of f32 GEMMs at one instruction set, and their arguments: tiles of a GEMM
// with packed weights, GEMMs that contract rows, GEMMs with few columns. Each file of isa/ fills its own
// table.
#pragma once

#include "backend/cpu/elementwise/table.h"

namespace vitrail::cpu {

// The epilogue of a GEMM, what happens to its sums on their way to memory: c = residual + scale * act(sum +
// bias), in this order; a null pointer leaves a step out. `residual` may be the output itself.
struct Epilogue {
  const float* bias = nullptr;  // [n]
  Activation act = Activation::kNone;
  const float* scale = nullptr;  // [n]
  const float* residual = nullptr;
  int64_t residual_stride = 0;  // elements between rows
};

// c[rows, col_begin..col_end) = epilogue(a[rows, k] * w[n, k]^T), where w was packed by pack_weights.
struct GemmTile {
  const float* a = nullptr;
  int64_t lda = 0;
  const float* packed = nullptr;  // the whole weight
  float* c = nullptr;             // row 0, column 0 of the whole width
  int64_t ldc = 0;
  int64_t rows = 0, n = 0, k = 0;
  int64_t col_begin = 0, col_end = 0;  // col_begin a multiple of nr
  Epilogue epilogue;                   // residual at row 0, column 0
  float* scratch = nullptr;            // gemm_scratch_elems(rows, col_end - col_begin, k), 64-byte aligned
  const float* next = nullptr;         // the panel this thread will probably need after the tile: prefetched
};

// c[rows, cols] (+)= a[depth, rows]^T b[depth, cols], with a packed by pack_strips and b by pack_panels.
struct RowGemmTile {
  const float *strips = nullptr, *panels = nullptr;  // the first of the tile's
  int64_t depth = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  int64_t rows = 0, cols = 0;
  bool add = false;
};

// out[rows, cols] = a[rows, k] * panel, or a[k, rows]^T * panel: a GEMM of few columns with a matrix that is
// not packed. The panel is [k, nr] and out has row stride nr; the vectors that hold the columns are written
// whole.
struct PanelGemm {
  const float* a = nullptr;
  int64_t lda = 0, rows = 0;
  const float* panel = nullptr;
  int64_t cols = 0, k = 0;
  bool transposed = false;
  float* out = nullptr;
};

struct GemmTable {
  int64_t (*packed_elems)(int64_t n, int64_t k);
  void (*pack_weights)(const float* w, int64_t n, int64_t k, float* packed);  // w row-major [n, k]
  int64_t (*gemm_scratch_elems)(int64_t rows, int64_t cols, int64_t k);
  void (*gemm_tile)(const GemmTile&);
  // Runs only the last step of gemm_tile: c = epilogue(sums), sums[rows, col_end - col_begin] with row stride
  // lds.
  void (*finish_tile)(const GemmTile&, const float* sums, int64_t lds);
};

struct PanelTable {
  // Packs b row-major [k, n] into panels of `depth` >= k rows; `packed` points at the first row to fill.
  void (*pack_matrix)(const float* b, int64_t ldb, int64_t k, int64_t n, int64_t depth, float* packed);
  void (*panel_gemm)(const PanelGemm&);
};

struct RowGemmTable {
  // Packs x[rows, cols] into groups of mr or nr columns, each `depth` >= rows rows long and padded to its
  // whole width; `packed` points at the first row to fill.
  void (*pack_strips)(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed);
  void (*pack_panels)(const float* x, int64_t ldx, int64_t rows, int64_t cols, int64_t depth, float* packed);
  void (*row_gemm_tile)(const RowGemmTile&);
};

}  // namespace vitrail::cpu
