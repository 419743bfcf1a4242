// Launches of 16-bit GEMMs of few rows by our own kernel for compute capability 9.0. Its tiles are chosen for
// the sizes of each, and it loads weights while the launch before it still runs.
#include <algorithm>

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/gemm_tiles.h"
#include "backend/cuda/launch.h"

namespace vitrail::cuda {

namespace {

// From so many rows on cuBLASLt's tiles win: later where it would need a pass after the GEMM, sooner where
// there are many terms.
constexpr int64_t kFewRows = 256, kFewRowsOfPass = 512, kFewRowsOfManyTerms = 64, kManyTerms = 2048;

std::string small_matrices_unsupported(const NodeView& node, const GemmPlan& plan) {
  const DType type = node.ins[plan.a].dtype, result = node.outs[0].dtype;
  if (plan.images >= 0) return "gathers no patches";
  if (!plan.b_transposed || plan.a_transposed || plan.target >= 0) return "computes no gradient";
  if (type != DType::kBF16 && type != DType::kF16) return "multiplies 16-bit types only";
  if (node.ins[plan.b].dtype != type) return "multiplies one type only";
  if (result != type && result != DType::kF32) return strf("writes no %s", to_string(result));
  return hopper_sizes_unsupported(plan);
}

std::string small_epilogue_unsupported(const NodeView& node, const GemmPlan& plan) {
  if (plan.act != Activation::kNone && node.outs[0].dtype == DType::kF32)
    return "has no gelu of f32's accuracy";
  return hopper_epilogue_unsupported(node, plan);
}

std::string declines_small(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = declines_unless_plain(node, device); !reason.empty()) return reason;
  if (device.compute != 90) return "needs compute capability 9.0";
  if (node.outs.size() != 1) return "has one result";
  const GemmPlan plan = plan_gemm(node, Multiplier::kLibrary);
  if (!plan.unsupported.empty()) return plan.unsupported;
  if (std::string reason = small_matrices_unsupported(node, plan); !reason.empty()) return reason;
  return small_epilogue_unsupported(node, plan);
}

bool has_few_rows(const NodeView& node, const DeviceInfo& device) {
  if (!declines_small(node, device).empty()) return false;
  const GemmPlan plan = plan_gemm(node, Multiplier::kLibrary);
  if (plan.k >= kManyTerms) return plan.m < kFewRowsOfManyTerms;
  return plan.m < (plan.finished ? kFewRowsOfPass : kFewRows);
}

// The scratch is cuBLASLt's: a plan's memory does not depend on the choice among a GEMM's kernels.
Prepared prepare_small(const NodeView& node, const DeviceInfo& device) {
  const GemmPlan plan = plan_gemm(node, Multiplier::kLibrary);
  Bound<SmallGemmCall> call;
  call.embed(call->gemm, fused_call(node, plan));
  call->tile = choose_tile(plan.m, plan.n, plan.k, processors_of(device));
  call.bind_fixed(call->early, {plan.b, plan.bias, plan.scale});
  return prepared(&GemmApi::small_gemm, call, plan.scratch_bytes);
}

}  // namespace

Kernel hopper_small_kernel() {
  Kernel kernel = cuda_kernel("hopper_small", prepare_small, declines_small);
  kernel.only_by_table = true;
  kernel.by_default = has_few_rows;
  return kernel;
}

}  // namespace vitrail::cuda
