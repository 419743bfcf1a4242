#include "io/tensor_source.h"

#include <algorithm>

#include "base/error.h"

namespace vitrail {

std::optional<size_t> TensorSource::find(std::string_view name) const {
  std::call_once(indexed_, [this] {
    for (size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
  });
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

void TensorSource::read_part(size_t index, size_t offset, std::span<std::byte> target) const {
  std::vector<std::byte> whole(tensors_.at(index).bytes);
  VT_CHECK(offset <= whole.size() && target.size() <= whole.size() - offset);
  read(index, whole);
  std::copy_n(whole.begin() + static_cast<ptrdiff_t>(offset), target.size(), target.begin());
}

}  // namespace vitrail
