// The only owner of tensor memory: aligned, move-only, counted by category. Knows no shapes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/memory_source.h"

namespace vitrail {

class Buffer {
 public:
  static constexpr size_t kAlignment = 64;

  Buffer() = default;
  // Allocates from `source`, which must outlive the buffer; null: process_memory().
  Buffer(size_t bytes, Category category, MemorySource* source = nullptr);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Returns the bytes held by all living buffers of a category in this process, whatever their source: for
  // tests of what a caller holds who does not see its ranks. A rank counts its own (RankContext::allocated).
  static size_t allocated(Category category);

 private:
  void release();
  void count(ptrdiff_t bytes);

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Category category_ = Category::kTransient;
  MemorySource* source_ = nullptr;
};

}  // namespace vitrail
