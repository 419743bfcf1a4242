// Copies the part of a tensor that a rank holds out of the whole, and back into it.
#include "tensor/layout.h"

#include <cstring>

namespace vitrail {

Shape whole_of(const Shape& part) {
  std::vector<Dim> dims;
  for (const Dim& dim : part) dims.emplace_back(dim.name, dim.extent);
  return Shape(std::move(dims));
}

namespace {

// Calls run(element of the whole, element of the part, count) for the longest runs that lie together in both.
template <typename Run>
void each_run(const Shape& part, const Run& run) {
  if (part.elems() == 0) return;
  size_t split = part.rank();  // dims from here on are whole
  int64_t inner = 1;
  while (split > 0 && part[split - 1].local == part[split - 1].extent) inner *= part[--split].extent;
  const int64_t row = split > 0 ? part[split - 1].local : 1;
  const int64_t rows = part.elems() / (row * inner);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t left = r, at = split > 0 ? part[split - 1].offset : 0;
    int64_t stride = split > 0 ? part[split - 1].extent : 1;
    for (size_t d = split; d-- > 1;) {
      const Dim& dim = part[d - 1];
      at += (dim.offset + left % dim.local) * stride;
      left /= dim.local;
      stride *= dim.extent;
    }
    run(at * inner, r * row * inner, row * inner);
  }
}

}  // namespace

void copy_out_part(const Shape& part, size_t elem_bytes, const void* whole, void* target) {
  each_run(part, [&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(static_cast<std::byte*>(target) + static_cast<size_t>(to) * elem_bytes,
                static_cast<const std::byte*>(whole) + static_cast<size_t>(from) * elem_bytes,
                static_cast<size_t>(count) * elem_bytes);
  });
}

void copy_in_part(const Shape& part, size_t elem_bytes, const void* source, void* whole) {
  each_run(part, [&](int64_t to, int64_t from, int64_t count) {
    std::memcpy(static_cast<std::byte*>(whole) + static_cast<size_t>(to) * elem_bytes,
                static_cast<const std::byte*>(source) + static_cast<size_t>(from) * elem_bytes,
                static_cast<size_t>(count) * elem_bytes);
  });
}

}  // namespace vitrail
