#include "tensor/tensor.h"

namespace vitrail {

std::string to_string(const TensorDesc& desc) {
  std::string text = to_string(desc.dtype) + to_string(desc.shape);
  if (!desc.packing.empty()) text += "@" + std::string(desc.packing);
  return text;
}

}  // namespace vitrail
