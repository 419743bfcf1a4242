// The only owner of tensor memory: aligned, move-only, counted by category. Knows no shapes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/memory_source.h"

namespace vitrail {

// What memory is allocated for; the rows of every memory table.
enum class Category : uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kSaved,
  kTransient,
  kScratch,
  kCommunication,
  kStaging
};
inline constexpr size_t kCategoryCount = 8;
const char* to_string(Category category);

class Buffer {
 public:
  static constexpr size_t kAlignment = 64;

  Buffer() = default;
  // Allocates from `source`, which must outlive the buffer; null: this process's memory.
  Buffer(size_t bytes, Category category, MemorySource* source = nullptr);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Returns the bytes held by all living buffers of a category, in this process.
  static size_t allocated(Category category);

 private:
  void release();

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Category category_ = Category::kTransient;
  MemorySource* source_ = nullptr;
};

}  // namespace vitrail
