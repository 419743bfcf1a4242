// Launches of 16-bit GEMMs by our own kernel for compute capability 9.0, whose epilogue does what cuBLASLt
// needs a separate pass for: the erf form of the gelu, and a scaled residual.
#include <algorithm>

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/launch.h"

namespace vitrail::cuda {

namespace {

constexpr int kCompute = 90;
constexpr int64_t kLongest = int64_t{1} << 30;  // rows, columns and terms are counted in 32 bits
constexpr int64_t kManyRows = 2000;             // with fewer, cuBLASLt's smaller tiles win

std::string unsupported_matrices(const NodeView& node, const GemmPlan& plan) {
  const DType type = node.ins[plan.a].dtype;
  if (plan.images >= 0) return "gathers no patches";
  if (plan.a_transposed || plan.target >= 0) return "computes no gradient of a weight";
  if (type != DType::kBF16 && type != DType::kF16) return "multiplies 16-bit types only";
  if (node.ins[plan.b].dtype != type || node.outs[0].dtype != type) return "reads and writes one type";
  for (int64_t row : {plan.k, plan.n})
    if (row % 8 != 0)
      return strf("rows of %lld 16-bit elements are not whole 16 bytes", static_cast<long long>(row));
  if (std::max({plan.m, plan.n, plan.k}) > kLongest) return "a matrix is too long";
  return {};
}

std::string unsupported_epilogue(const NodeView& node, const GemmPlan& plan) {
  const DType type = node.ins[plan.a].dtype;
  const bool gelu = plan.act != Activation::kNone;
  if (plan.slope_at >= 0) return "has no slope of a gelu";
  if (plan.act == Activation::kGeluTanh) return "has the erf form of the gelu only";
  if (gelu && (plan.scale >= 0 || plan.residual >= 0)) return "ends with the gelu";
  if (plan.scale >= 0 && plan.residual < 0) return "scales what is added to a residual only";
  if (plan.residual >= 0 && node.ins[plan.residual].dtype != type) return "adds a residual of its own type";
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

// It is the default where cuBLASLt would need a pass after the GEMM, provided that there are many tiles.
bool chosen_by_default(const NodeView& node, const DeviceInfo& device) {
  if (!declines_hopper(node, device).empty()) return false;
  const GemmPlan plan = plan_gemm(node, Multiplier::kLibrary);
  return plan.finished && plan.m >= kManyRows;
}

// The kernel needs no scratch; it reserves cuBLASLt's, so that a plan's memory does not depend on the choice
// among a GEMM's kernels.
size_t hopper_scratch_bytes(const NodeView& node, const DeviceInfo&) {
  return plan_gemm(node, Multiplier::kLibrary).scratch_bytes;
}

void run_hopper(const KernelArgs& args) {
  const GemmPlan plan = plan_gemm(args, Multiplier::kLibrary);
  const auto input = [&](int i) { return i < 0 ? Operand{} : operand(args.ins[i]); };
  api().gemms.hopper_gemm(session(args), {.m = plan.m,
                                          .n = plan.n,
                                          .k = plan.k,
                                          .a = input(plan.a),
                                          .b = input(plan.b),
                                          .d = operand(args.outs[0]),
                                          .b_transposed = plan.b_transposed,
                                          .bias = input(plan.bias),
                                          .scale = input(plan.scale),
                                          .residual = input(plan.residual),
                                          .act = plan.act});
}

}  // namespace

Kernel hopper_gemm_kernel() {
  Kernel kernel = cuda_kernel("hopper", run_hopper, declines_hopper, hopper_scratch_bytes);
  kernel.only_by_table = true;
  kernel.by_default = chosen_by_default;
  return kernel;
}

}  // namespace vitrail::cuda
