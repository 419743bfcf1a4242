// Launches of GEMMs by oneDNN on our own tiles, where the weight is not packed, and the keys of GEMMs in a
// table of kernels.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/gemm_node.h"
#include "backend/cpu/gemm/onednn.h"
#include "backend/cpu/launch.h"
#include "ops/fused.h"
#include "ops/linear.h"

namespace vitrail::cpu {

std::optional<TuneKey> gemm_key(const NodeView& node, const DeviceInfo& device) {
  if (!is<LinearOp>(node.op) && !dynamic_cast<const FusedOp*>(&node.op)) return std::nullopt;
  const GemmNode p = parse_gemm(node.op);
  if (!p.unsupported.empty() || p.is_patch_embed || p.arithmetic != Arithmetic::kExact) return std::nullopt;
  const MatmulExtents e = gemm_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  return TuneKey{std::string(LinearOp::kKind), e.m, e.n, e.k, device.threads, device.isa};
}

namespace {

std::string declines_onednn(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = packing_gemm().declines(node, device); !reason.empty()) return reason;
  if (parse_gemm(node.op).is_patch_embed) return "takes no patches";
  return onednn().missing;
}

Prepared prepare_onednn(const NodeView& node, const DeviceInfo& device) {
  const GemmNode p = parse_gemm(node.op);
  const MatmulExtents e = gemm_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  const ScratchNeed need = library_linear_scratch(isa_of(device), e.m, e.n, e.k, p.norm.has_value());
  return {need.total(device.threads), [p, e](const KernelArgs& args) {
            parallel_library_linear(context_of(args), onednn(), linear_args(args, p, e),
                                    args.ins[p.weight].as<float>());
          }};
}

}  // namespace

Kernel onednn_gemm() {
  return {.name = "onednn tiles", .declines = declines_onednn, .prepare = prepare_onednn};
}

}  // namespace vitrail::cpu
