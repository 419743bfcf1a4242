// Products by oneDNN on our own tiles, where the weight is not packed, and how tables know products.
#include "backend/cpu/context.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/library_linear.h"
#include "backend/cpu/product.h"
#include "ops/fused.h"
#include "ops/linear.h"

namespace vitrail::cpu {

std::optional<TuneKey> product_key(const NodeView& node, const DeviceInfo& device) {
  if (!is<LinearOp>(node.op) && !dynamic_cast<const FusedOp*>(&node.op)) return std::nullopt;
  const Product p = parse_product(node.op);
  if (!p.misfit.empty() || p.is_patch_embed || p.arithmetic != Arithmetic::kExact) return std::nullopt;
  const MatmulExtents e = product_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  return TuneKey{"linear", e.m, e.n, e.k, device.threads, device.isa};
}

std::string declines_library(const NodeView& node, const DeviceInfo& device, const GemmLibrary& library) {
  if (std::string reason = declines_plain_linear(node, device); !reason.empty()) return reason;
  if (parse_product(node.op).is_patch_embed) return "takes no patches";
  return library.missing;
}

size_t library_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse_product(node.op);
  const MatmulExtents e = product_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  return library_linear_scratch(isa_of(device), e.m, e.n, e.k, p.norm != nullptr).total(device.threads);
}

void run_library_linear(const KernelArgs& args, const GemmLibrary& library) {
  const Product p = parse_product(args.op);
  const MatmulExtents e = product_extents(p, args.ins[p.x].shape(), args.ins[p.weight].shape());
  parallel_library_linear(context_of(args), library, linear_args(args, p, e), args.ins[p.weight].as<float>());
}

}  // namespace vitrail::cpu
