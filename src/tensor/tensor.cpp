#include "tensor/tensor.h"

namespace vitrail {

std::string to_string(const TensorDesc& desc) { return to_string(desc.dtype) + to_string(desc.shape); }

}  // namespace vitrail
