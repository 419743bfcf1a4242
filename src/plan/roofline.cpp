#include "plan/roofline.h"

#include <algorithm>

#include "base/error.h"
#include "base/values.h"
#include "ops/fused.h"
#include "ops/linear.h"

namespace vitrail {

namespace {
DType narrowest_float(const Program& program, const Node& node) {
  DType narrowest = DType::kF32;
  for (const TensorDesc& desc : program.descs(node.ins))
    if (is_float(desc.dtype) && size_of(desc.dtype) < size_of(narrowest)) narrowest = desc.dtype;
  return narrowest;
}
}  // namespace

std::string type_of(const Program& program, const Node& node) {
  Arithmetic arithmetic = arithmetic_of(*node.op);
  if (const auto* fused = dynamic_cast<const FusedOp*>(node.op.get()))
    for (const FusedOp::Member& member : fused->members())
      arithmetic = std::max(arithmetic, arithmetic_of(*member.op));
  return arithmetic != Arithmetic::kExact ? enum_name(arithmetic) : to_string(narrowest_float(program, node));
}

std::string gemm_type(const Program& program) {
  double most = -1;
  std::string type = to_string(DType::kF32);
  for (const Node& node : program.nodes) {
    const double flops = node.op->cost(program.descs(node.ins), program.descs(node.outs)).flops;
    if (flops > most) {
      most = flops;
      type = type_of(program, node);
    }
  }
  return type;
}

double estimate_seconds(const Program& program, const Node& node, const Roofline& device) {
  const Cost cost = node.op->cost(program.descs(node.ins), program.descs(node.outs));
  const auto known = device.flops.find(type_of(program, node));
  const double flops = known == device.flops.end() ? device.flops.at("f32") : known->second;
  return std::max(cost.flops / flops, cost.bytes / device.bytes);
}

double estimate_seconds(const Program& program, const Roofline& device) {
  double seconds = 0;
  for (const Node& node : program.nodes) seconds += estimate_seconds(program, node, device);
  return seconds;
}

std::set<std::string> unknown_types(const Program& program, const Roofline& device) {
  std::set<std::string> types;
  for (const Node& node : program.nodes)
    if (const std::string type = type_of(program, node); !device.flops.contains(type)) types.insert(type);
  return types;
}

std::string unknown_text(const std::set<std::string>& types) {
  if (types.empty()) return {};
  return strf("; %s at the rate of f32: the device file has none of its own",
              join({types.begin(), types.end()}, ", ").c_str());
}

}  // namespace vitrail
