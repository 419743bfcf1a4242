#include "io/strided.h"

#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace vitrail {

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::vector<int64_t> column_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = 1; i < shape.size(); ++i) strides[i] = strides[i - 1] * shape[i - 1];
  return strides;
}

bool StridedView::is_row_major() const {
  const std::vector<int64_t> wanted = row_major_strides(shape);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] > 1 && strides[i] != wanted[i]) return false;
  return true;
}

void StridedView::require_within(uint64_t elements) const {
  VT_REQUIRE(shape.size() == strides.size(), ErrorKind::kData, "%zu dimensions but %zu strides", shape.size(),
             strides.size());
  const auto count = checked_bytes(shape, 1);
  VT_REQUIRE(count && *count <= elements, ErrorKind::kData,
             "the shape asks for more elements than the %llu of its storage",
             static_cast<unsigned long long>(elements));
  if (*count == 0) return;
  uint64_t last = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    VT_REQUIRE(strides[i] >= 0, ErrorKind::kData, "negative stride %lld", static_cast<long long>(strides[i]));
    const auto reach = checked_mul(static_cast<uint64_t>(shape[i] - 1), static_cast<uint64_t>(strides[i]));
    const auto sum = reach ? checked_add(last, *reach) : reach;
    VT_REQUIRE(sum && *sum < elements, ErrorKind::kData,
               "offset and strides reach past the end of the storage");
    last = *sum;
  }
  VT_REQUIRE(last < elements, ErrorKind::kData, "the offset lies past the end of the storage");
}

uint64_t StridedView::reach() const {
  uint64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    last += static_cast<uint64_t>(shape[i] - 1) * static_cast<uint64_t>(strides[i]);
  }
  return last + 1;
}

void gather(const StridedView& view, size_t element_bytes, std::span<const std::byte> source,
            std::span<std::byte> target) {
  if (target.empty()) return;
  const std::byte* start = source.data() + view.offset * element_bytes;
  if (view.is_row_major()) {
    std::memcpy(target.data(), start, target.size());
    return;
  }
  const size_t rank = view.shape.size();
  std::vector<int64_t> index(rank, 0);
  int64_t element = 0;
  for (size_t at = 0; at < target.size(); at += element_bytes) {
    std::memcpy(target.data() + at, start + element * static_cast<int64_t>(element_bytes), element_bytes);
    for (size_t d = rank; d-- > 0;) {
      element += view.strides[d];
      if (++index[d] < view.shape[d]) break;
      element -= view.strides[d] * view.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace vitrail
