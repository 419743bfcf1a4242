// A view of elements laid out with arbitrary strides, and copying it into row-major order. Files that hold
// such tensors: torch (views) and npy (column-major arrays). Knows no format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrail {

struct StridedView {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements, never negative
  uint64_t offset = 0;           // in elements

  bool is_row_major() const;
  // Throws Error(kData) unless every element lies within `elements` and the view holds no more of them
  // than there are (an expanded view would turn a small file into a huge tensor).
  void require_within(uint64_t elements) const;
  // Returns the number of elements from the first to the last, those between included; the view is already
  // checked.
  uint64_t reach() const;
};

// Returns the strides of a contiguous array of this shape, last index fastest or first index fastest.
std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);
std::vector<int64_t> column_major_strides(std::span<const int64_t> shape);

// Copies the view, already checked by require_within, into `target` in row-major order.
void gather(const StridedView& view, size_t element_bytes, std::span<const std::byte> source,
            std::span<std::byte> target);

}  // namespace vitrail
