// Limits every container format shares, and the one place where a shape from a file becomes a byte count.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "base/checked.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/text.h"
#include "io/tensor_source.h"

namespace vitrail {

constexpr size_t kMaxTensors = 100'000;
constexpr size_t kMaxTensorName = 1024;
constexpr size_t kMaxRank = 8;

inline void require_tensor_name(std::string_view name) {
  VT_REQUIRE(!name.empty() && name.size() <= kMaxTensorName && is_valid_utf8(name), ErrorKind::kData,
             "tensor name %s: expected 1 to %zu bytes of UTF-8, found %zu", quoted(name).c_str(),
             kMaxTensorName, name.size());
}

// Returns product(shape) * size_of(dtype); throws Error(kData) for a negative extent, overflow or too many
// dimensions.
inline size_t tensor_bytes(std::span<const int64_t> shape, DType dtype) {
  VT_REQUIRE(shape.size() <= kMaxRank, ErrorKind::kData, "%zu dimensions, at most %zu are read", shape.size(),
             kMaxRank);
  const auto bytes = checked_bytes(shape, size_of(dtype));
  VT_REQUIRE(bytes, ErrorKind::kData, "the shape is negative or its size does not fit 63 bits");
  return static_cast<size_t>(*bytes);
}

// Requires what a reader would accept. A writer holds one tensor at a time, so the largest must fit in
// memory.
inline void require_writable(std::span<const TensorToWrite> tensors) {
  std::unordered_set<std::string_view> names;
  size_t largest = 0;
  VT_REQUIRE(tensors.size() <= kMaxTensors, ErrorKind::kData, "%zu tensors, at most %zu are written",
             tensors.size(), kMaxTensors);
  for (const TensorToWrite& tensor : tensors) {
    require_tensor_name(tensor.info.name);
    VT_REQUIRE(names.insert(tensor.info.name).second, ErrorKind::kData, "two tensors are named %s",
               quoted(tensor.info.name).c_str());
    largest = std::max(largest, tensor.info.bytes);
    VT_CHECK(tensor.info.bytes == tensor_bytes(tensor.info.shape, tensor.info.dtype),
             "%s: bytes do not follow from the shape", tensor.info.name.c_str());
  }
  require_free_memory(largest, "writing the largest tensor");
}

}  // namespace vitrail
