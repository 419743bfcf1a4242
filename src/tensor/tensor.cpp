#include "tensor/tensor.h"

#include "base/checked.h"

namespace vitrail {

size_t TensorDesc::bytes() const {
  if (!packing.empty()) return packed_bytes;
  const auto total = checked_mul(static_cast<uint64_t>(elems()), size_of(dtype));
  VT_REQUIRE(total && *total <= static_cast<uint64_t>(INT64_MAX), ErrorKind::kMemory,
             "%s needs more than 2^63 bytes", to_string(*this).c_str());
  return *total;
}

std::string to_string(const TensorDesc& desc) {
  std::string text = to_string(desc.dtype) + to_string(desc.shape);
  if (!desc.packing.empty()) text += "@" + std::string(desc.packing);
  return text;
}

}  // namespace vitrail
