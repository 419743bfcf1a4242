// The arguments of GEMMs as program and plugin agree on them: the GEMM itself, the pass over its result for
// what cuBLASLt's epilogues lack, and the gathering of patches. All matrices are row-major and dense.
#pragma once

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

// d[m, n] = act(a[m, k] . b[k, n] + bias[n]) * scale[n] + residual[m, n], summed in f32. An operand without
// data is left out. a, b, d and residual have one 16-bit type, bias and scale that type or f32; k and n are
// multiples of 8. There may be a gelu (of the erf form) or a residual, not both, a scale only with a
// residual, and all of these only where b is transposed. residual may be d itself.
struct FusedGemmCall {
  int64_t m = 0, n = 0, k = 0;
  Operand a, b, d;
  bool b_transposed = false;  // stored as [n, k]
  Operand bias = {}, scale = {}, residual = {};
  Activation act = Activation::kNone;
};

// out = act(gemm + bias) * scale + residual, or times act's derivative at `slope_at` where that is given; all
// are [rows, width] but bias and scale, which are [width]. An operand without data is left out. Every type
// may differ; out may be gemm or residual itself, with the same type.
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
  void (*gemm)(Session&, const GemmCall&);              // by cuBLASLt
  void (*tiled_gemm)(Session&, const GemmCall&);        // by an own kernel: any sizes and types
  void (*hopper_gemm)(Session&, const FusedGemmCall&);  // by an own kernel for compute capability 9.0
  void (*finish)(Session&, const FinishCall&);
  void (*gather_patches)(Session&, const PatchesCall&);
  void (*copy_rows)(Session&, const RowsCall&);
};

}  // namespace vitrail::cuda
