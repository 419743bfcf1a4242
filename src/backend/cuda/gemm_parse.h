// How a node that multiplies matrices is carried out: which matrices, what cuBLASLt's epilogue does, what a
// pass of its own does after it, and where in the scratch everything lies. Decided from descriptions alone;
// used by launch_gemms.cpp for the choice, the scratch and the launch.
#pragma once

#include "backend/cuda/api/gemms.h"
#include "backend/kernel.h"

namespace vitrail::cuda {

// cuBLASLt in the types of the operands, the own kernel, or cuBLASLt in fp8.
enum class Multiplier { kLibrary, kTiles, kFp8 };

// Inputs by their place in the node; -1: absent.
struct GemmPlan {
  std::string unsupported;  // why the node is none of these; the rest means nothing then

  // d[m, n] = a[m, k] . b[k, n]
  int64_t m = 0, n = 0, k = 0;
  int a = -1, b = -1;
  bool a_transposed = false, b_transposed = false;
  int images = -1;  // a or b, whose patches are gathered first
  int64_t patch_rows = 0, patch_columns = 0;
  int target = -1;  // the sum the GEMM is added to; -1: it is the node's output

  int bias = -1, scale = -1, residual = -1, slope_at = -1;
  Activation act = Activation::kNone;
  DType gemm_type = DType::kF32;  // what the GEMM alone is rounded to
  bool tf32 = false;

  int norm_weight = -1, norm_bias = -1;  // of the layernorm that a, of fp8, goes through
  double eps = 0;

  bool finished = false;         // by a pass after the GEMM, which then takes bias, act, scale and residual
  bool gemm_in_scratch = false;  // the pass reads it there; otherwise from the output itself
  bool casts_bias = false;       // to the type cuBLASLt wants
  DType bias_type = DType::kF32;

  // From the start of the scratch, once that is brought to a multiple of 256.
  size_t bias_at = 0, gemm_at = 0, patches_at = 0, scratch_bytes = 0;
  // Of fp8: codes and scales of a and, where they do not come with the weight, of b; what finds the latter.
  size_t a_codes_at = 0, a_scales_at = 0, b_codes_at = 0, b_scales_at = 0, tops_at = 0;
};

GemmPlan plan_gemm(const NodeView& node, Multiplier by);
GemmPlan plan_gemm(const KernelArgs& args, Multiplier by);

}  // namespace vitrail::cuda
