#include "backend/cuda/launch.h"

namespace vitrail::cuda {

int64_t row_length(const TensorDesc& desc) {
  return desc.shape.rank() == 0 ? 1 : desc.shape[desc.shape.rank() - 1].local;
}

int64_t row_count(const TensorDesc& desc) {
  const int64_t length = row_length(desc);
  return length == 0 ? 0 : desc.elems() / length;
}

namespace {
std::string unsuited(const TensorDesc& desc) {
  if (!desc.packing.empty()) return "reads and writes row-major values only";
  if (desc.dtype == DType::kF64) return "computes in f32, bf16 and f16";
  if (!is_float(desc.dtype) && desc.dtype != DType::kI64)
    return std::string("has no kernel for ") + to_string(desc.dtype);
  return {};
}
}  // namespace

std::string declines_unless_plain(const NodeView& node, const DeviceInfo&) {
  for (const DescSpan descs : {node.ins, node.outs})
    for (const TensorDesc& desc : descs)
      if (std::string reason = unsuited(desc); !reason.empty()) return reason;
  return {};
}

Kernel cuda_kernel(const char* name, PrepareNode prepare, Declines declines) {
  return {.name = name, .declines = declines, .prepare = prepare};
}

}  // namespace vitrail::cuda
