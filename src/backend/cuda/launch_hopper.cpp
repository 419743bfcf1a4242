// Launches of 16-bit GEMMs by our own kernel for compute capability 9.0, whose epilogue does what cuBLASLt
// needs a separate pass for: the erf form of the gelu, also beside what it is the gelu of or its slope, the
// gradient by that slope with the sums of the columns, and a scaled residual.
#include <algorithm>

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/launch.h"

namespace vitrail::cuda {

namespace {

constexpr int kCompute = 90;
constexpr int64_t kManyRows = 2000;  // with fewer, cuBLASLt's smaller tiles win
constexpr double kBusy = 0.9;        // the share of useful work from which it beats cuBLASLt alone

std::string unsupported_matrices(const NodeView& node, const GemmPlan& plan) {
  const DType type = node.ins[plan.a].dtype;
  if (plan.images >= 0) return "gathers no patches";
  if (plan.a_transposed || plan.target >= 0) return "computes no gradient of a weight";
  if (type != DType::kBF16 && type != DType::kF16) return "multiplies 16-bit types only";
  if (node.ins[plan.b].dtype != type || node.outs[0].dtype != type) return "reads and writes one type";
  return hopper_sizes_unsupported(plan);
}

std::string unsupported_epilogue(const NodeView& node, const GemmPlan& plan) {
  const DType type = node.ins[plan.a].dtype;
  const bool slope = plan.slope_at >= 0, gelu = plan.act != Activation::kNone;
  if (slope && node.ins[plan.slope_at].dtype != type) return "reads one type";
  if (plan.keeps && !gelu) return "keeps what a gelu reads only";
  if (std::string reason = hopper_epilogue_unsupported(node, plan); !reason.empty()) return reason;
  for (int row : {plan.bias, plan.scale})
    if (row >= 0 && node.ins[row].dtype != type && node.ins[row].dtype != DType::kF32)
      return strf("has no bias or scale of %s", to_string(node.ins[row].dtype));
  return {};
}

std::string declines_hopper(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = declines_unless_plain(node, device); !reason.empty()) return reason;
  if (device.compute != kCompute) return "needs compute capability 9.0";
  const GemmPlan plan = plan_gemm(node, Multiplier::kLibrary);
  if (!plan.unsupported.empty()) return plan.unsupported;
  if (std::string reason = unsupported_matrices(node, plan); !reason.empty()) return reason;
  return unsupported_epilogue(node, plan);
}

// The share of the processors' time that goes into elements of the result: the rest is tiles' overhang, and
// processors that are idle during the last wave.
double useful_share(const GemmPlan& plan, int64_t processors) {
  const int64_t waves = hopper_waves(plan.m, plan.n, processors, hopper_cluster(plan.m, plan.n, processors));
  const auto computed = static_cast<double>(waves * processors * kHopperTileRows * kHopperTileColumns);
  return static_cast<double>(plan.m) * static_cast<double>(plan.n) / computed;
}

// It is the default where cuBLASLt would need a pass after the GEMM, or has no kernel, provided that there
// are many tiles; and where its tiles fit the result and the GPU.
bool chosen_by_default(const NodeView& node, const DeviceInfo& device) {
  if (!declines_hopper(node, device).empty()) return false;
  const GemmPlan plan = plan_gemm(node, Multiplier::kLibrary);
  if (plan.m < kManyRows) return false;
  return plan.finished || plan.keeps || useful_share(plan, processors_of(device)) >= kBusy;
}

// The kernel needs scratch for column sums alone; else it reserves cuBLASLt's, so that a plan's memory does
// not depend on the choice among a GEMM's kernels.
Prepared prepare_hopper(const NodeView& node, const DeviceInfo&) {
  const GemmPlan plan = plan_gemm(node, Multiplier::kLibrary);
  Bound<FusedGemmCall> call = fused_call(node, plan);
  add_training(call, node, plan, scratch());
  const size_t bytes = plan.keeps ? 0 : plan.scratch_bytes;
  return prepared(&GemmApi::hopper_gemm, call, plan.sums ? partial_sum_bytes(plan) : bytes);
}

}  // namespace

Kernel hopper_gemm_kernel() {
  Kernel kernel = cuda_kernel("hopper", prepare_hopper, declines_hopper);
  kernel.only_by_table = true;
  kernel.by_default = chosen_by_default;
  return kernel;
}

}  // namespace vitrail::cuda
