// Plans how a GEMM node is carried out: which matrices it multiplies, what cuBLASLt's epilogue does, what a
// separate pass does after it, and where everything lies in the scratch. It is decided from descriptions
// alone, without a device.
#pragma once

#include "backend/cuda/bound_call.h"

namespace vitrail::cuda {

// cuBLASLt in the types of the operands, our own tiled kernel, or cuBLASLt in fp8.
enum class Multiplier { kLibrary, kTiles, kFp8 };

// The inputs are given by their place in the node; -1: absent.
struct GemmPlan {
  std::string unsupported;  // why the node cannot be carried out so; the other fields are then unset

  // d[m, n] = a[m, k] . b[k, n]
  int64_t m = 0, n = 0, k = 0;
  int a = -1, b = -1;
  bool a_transposed = false, b_transposed = false;
  int images = -1;  // a or b, where its patches are gathered first
  int64_t patch_rows = 0, patch_columns = 0;
  // These say whether zeros follow every patch, and in a copy of the weight every row, up to k elements; or
  // up to n, which the result does not get.
  bool pads_weight = false, cuts_result = false;
  int target = -1;  // the gradient sum that the result is added to; -1: the result is the node's output

  int bias = -1, scale = -1, residual = -1;
  int slope_at = -1;  // what act's slope is taken at; the slope itself where there is no act
  // These say what the node makes beside its first output: what the gelu reads, or its slope there; or the
  // sums of the output's columns.
  bool keeps = false, keeps_slope = false, sums = false;
  Activation act = Activation::kNone;
  DType gemm_type = DType::kF32;  // what the GEMM's sums are rounded to
  bool tf32 = false;

  int norm_weight = -1, norm_bias = -1;  // of the layernorm before an fp8 GEMM
  double eps = 0;

  bool finished = false;         // a pass after the GEMM applies bias, act, scale and residual
  bool gemm_in_scratch = false;  // the pass reads the sums there; otherwise from the output itself
  bool casts_bias = false;       // to the type cuBLASLt requires
  DType bias_type = DType::kF32;

  // Offsets in bytes from the start of the scratch, which is aligned to 256 bytes.
  size_t bias_at = 0, gemm_at = 0, patches_at = 0, weight_at = 0, scratch_bytes = 0;
  // These are for fp8: offsets of the codes, scales and norms of a, those of b where its weight was not
  // rounded at load, the column maxima for b's scales, and what bounds the result.
  size_t a_codes_at = 0, a_scales_at = 0, a_norms_at = 0, b_codes_at = 0, b_scales_at = 0, b_norms_at = 0;
  size_t tops_at = 0, bound_at = 0;
};

GemmPlan plan_gemm(const NodeView& node, Multiplier by);

// The pass after the GEMM, and the one that casts the bias before it.
Bound<FinishCall> finish_call(const NodeView& node, const GemmPlan& plan, const Place& gemm,
                              const Place& result);
Bound<FinishCall> cast_call(const GemmPlan& plan, const Place& bias, const Place& cast);

// Our own GEMMs for compute capability 9.0 share these: why they lack the sizes or epilogue, and the call.
std::string hopper_sizes_unsupported(const GemmPlan& plan);
std::string hopper_epilogue_unsupported(const NodeView& node, const GemmPlan& plan);
Bound<FusedGemmCall> fused_call(const NodeView& node, const GemmPlan& plan);
// The bytes of the partial sums of the result's columns; 0: the node makes no such sums.
size_t partial_sum_bytes(const GemmPlan& plan);
// Adds what a node of training makes to the call: what the gelu reads is kept, or there is the gelu's slope,
// with sums of the columns.
void add_training(Bound<FusedGemmCall>& call, const NodeView& node, const GemmPlan& plan,
                  const Place& partials);

}  // namespace vitrail::cuda
