#include "cli/roofline.h"

#include <algorithm>

namespace vitrail::cli {

double Roofline::flops(DType dtype) const {
  return dtype == DType::kBF16 ? bf16_flops : dtype == DType::kF16 ? f16_flops : f32_flops;
}

DType narrowest_float(const Program& program, const Node& node) {
  DType narrowest = DType::kF32;
  for (const TensorDesc& desc : program.descs(node.ins))
    if (is_float(desc.dtype) && size_of(desc.dtype) < size_of(narrowest)) narrowest = desc.dtype;
  return narrowest;
}

double estimate_seconds(const Program& program, const Roofline& device) {
  double seconds = 0;
  for (const Node& node : program.nodes) {
    const Cost cost = node.op->cost(program.descs(node.ins), program.descs(node.outs));
    seconds += std::max(cost.flops / device.flops(narrowest_float(program, node)), cost.bytes / device.bytes);
  }
  return seconds;
}

}  // namespace vitrail::cli
