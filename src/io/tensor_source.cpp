#include "io/tensor_source.h"

namespace vitrail {

std::optional<size_t> TensorSource::find(std::string_view name) const {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].name == name) return i;
  return std::nullopt;
}

}  // namespace vitrail
