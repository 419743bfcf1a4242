// The arguments of GEMMs as program and plugin agree on them: the GEMM itself, the pass over its result for
// what cuBLASLt's epilogues lack, and the gathering of patches. All matrices are row-major and dense.
#pragma once

#include "backend/cuda/api/rows.h"
#include "backend/cuda/api/session.h"

namespace vitrail::cuda {

// The size of cuBLASLt's workspace; algorithms that need more are not considered.
inline constexpr size_t kWorkspaceBytes = size_t{32} << 20;

// The number of cuBLASLt's algorithms for a GEMM that have kernels of their own in the kernel list.
inline constexpr int kMostAlgorithms = 16;

enum class Activation : uint8_t { kNone, kGeluErf, kGeluTanh };

// d[m, n] = act(a[m, k] . b[k, n] + c + bias[n]), summed in f32.
struct GemmCall {
  int64_t m = 0, n = 0, k = 0;
  Operand a, b, d;
  // Where both are set, a and b are e4m3 codes (kU8), b is transposed, and the sums are multiplied by the
  // scale of their row and that of their column.
  const float *a_scales = nullptr, *b_scales = nullptr;
  bool tf32 = false;                                // a and b of f32, rounded to 10 bits of mantissa
  bool a_transposed = false, b_transposed = false;  // stored as [k, m] and [n, k]
  Operand c = {};                                   // of d's type, may be d itself; no data: none
  Operand bias = {};                                // no data: none; for cuBLASLt of d's type
  Activation act = Activation::kNone;               // cuBLASLt has the tanh form only, the own GEMM none
  void* workspace = nullptr;                        // kWorkspaceBytes from a multiple of 256 on
  int algorithm = 0;  // the place in cuBLASLt's list for this GEMM, best first; past its end: the first
};

// A result as e4m3 codes with a scale for each row, which is known before the GEMM: a sum is at most the
// product of the norms of its row of a and its column of b, and the gelu of a number at most that number. A
// scale that is too large by some powers of two costs a floating point code nothing but its smallest values.
struct BoundedCodes {
  float* scales = nullptr;       // of the result's rows, written here; null: the result is no codes
  const float* norms = nullptr;  // of a's rows
  const float* tops = nullptr;   // the largest norm of b's columns, and the largest magnitude of the bias
};

// d[m, n] = act(a[m, k] . b[k, n] + bias[n]) * scale[n] + residual[m, n], summed in f32. An operand without
// data is left out. All matrices have one 16-bit type, bias and scale that type or f32; k and n are multiples
// of 8. There may be a gelu (of the erf form) or a residual, not both, a scale only with a residual, and all
// of these only where b is transposed. residual may be d itself. With a gelu, `kept` gets what it is the gelu
// of, and that is rounded first, or with `keeps_slope` the gelu's slope there. With `slope_at`, d is
// a . b times the gelu's slope there, or without a gelu times what is there, and nothing else; slope_at may
// be d itself, and `sums` the sums of d's columns before rounding, by hopper_sum_parts partials.
//
// With a_scales and b_scales, a and b are e4m3 codes (kU8) and b is transposed; k is a multiple of 16, the
// results are bf16, and the GEMM ends in a gelu with `kept`, a gelu whose result becomes codes, or a slope.
struct FusedGemmCall {
  int64_t m = 0, n = 0, k = 0;
  Operand a, b, d;
  bool b_transposed = false;  // stored as [n, k]
  Operand bias = {}, scale = {}, residual = {}, kept = {}, slope_at = {};
  Activation act = Activation::kNone;
  bool keeps_slope = false;
  ColumnSums sums = {};
  const float *a_scales = nullptr, *b_scales = nullptr;
  BoundedCodes codes = {};
};
// The tiles of the Hopper GEMM. Each of a tile's four warps makes a row of partial sums.
inline constexpr int64_t kHopperTileRows = 128, kHopperTileColumns = 192;
constexpr int64_t hopper_sum_parts(int64_t rows) {
  return (rows + kHopperTileRows - 1) / kHopperTileRows * 4;
}
// Returns how many tiles one after another the busiest block computes, where clusters of `blocks` blocks
// compute stacks of so many tiles.
constexpr int64_t hopper_waves(int64_t m, int64_t n, int64_t processors, int64_t blocks) {
  const auto divided = [](int64_t items, int64_t each) { return (items + each - 1) / each; };
  const int64_t stacks = divided(m, blocks * kHopperTileRows) * divided(n, kHopperTileColumns);
  return divided(stacks, processors / blocks);
}
// The size of clusters: two blocks, which share what they load and are a few percent faster, unless their
// coarser division leaves more processors idle at the end.
constexpr int hopper_cluster(int64_t m, int64_t n, int64_t processors) {
  constexpr double kGain = 0.97;
  const auto waves = [&](int64_t blocks) {
    return static_cast<double>(hopper_waves(m, n, processors, blocks));
  };
  return kGain * waves(2) <= waves(1) ? 2 : 1;
}

// Says how the result of a GEMM of few rows is cut: into tiles of 64 rows, each computed by `splits` blocks
// that share its terms, 64 of which make a step.
struct GemmTile {
  int columns = 64, splits = 1;
};
inline constexpr int kSmallTileRows = 64, kMostSplits = 8, kStepTerms = 64;

// The same, with b transposed always, and d in f32 too.
struct SmallGemmCall {
  FusedGemmCall gemm;
  GemmTile tile;
  bool early = false;  // b, bias and scale may be read before the launch before this one is done
};

// out = act(gemm + bias) * scale + residual, or times act's derivative at `slope_at` where that is given,
// times slope_at itself where there is no act; all are [rows, width] but bias and scale, which are [width].
// An operand without data is left out. Every type may differ; out may be gemm or residual itself, with the
// same type.
struct FinishCall {
  int64_t rows = 0, width = 0;
  Operand gemm, out;
  Operand bias = {}, scale = {}, residual = {}, slope_at = {};
  Activation act = Activation::kNone;
};

// Gathers images [batch, channels, height, width] as rows of patches: [batch * patches, length], of which
// channels * rows * columns are the patch and the others zeros.
struct PatchesCall {
  int64_t batch = 0, channels = 0, height = 0, width = 0, rows = 0, columns = 0, length = 0;
  Operand images, out;
};

// to[rows, to_width] = from[rows, from_width], each row cut or followed by zeros, or `to` += the same.
struct RowsCall {
  int64_t rows = 0, from_width = 0, to_width = 0;
  Operand from, to;
  bool adds = false;
};

struct GemmApi {
  void (*gemm)(Session&, const GemmCall&);                  // by cuBLASLt
  void (*tiled_gemm)(Session&, const GemmCall&);            // by an own kernel: any sizes and types
  void (*hopper_gemm)(Session&, const FusedGemmCall&);      // by an own kernel for compute capability 9.0
  void (*hopper_fp8_gemm)(Session&, const FusedGemmCall&);  // the same of e4m3 codes
  void (*small_gemm)(Session&, const SmallGemmCall&);       // the same for few rows
  void (*finish)(Session&, const FinishCall&);
  void (*gather_patches)(Session&, const PatchesCall&);
  void (*copy_rows)(Session&, const RowsCall&);
};

}  // namespace vitrail::cuda
