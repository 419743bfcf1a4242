// The allocator of a Buffer's bytes: this process's memory, or a device's. It counts what its living buffers
// hold, so that each device, and with it each rank, knows its own share. Knows nothing of shapes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vitrail {

// Says what memory is allocated for; these are the rows of every memory table.
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

class MemorySource {
 public:
  MemorySource() = default;
  virtual ~MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;

  virtual std::byte* allocate(size_t bytes) = 0;  // aligned for any kernel; null when memory is exhausted
  virtual void release(std::byte* data) = 0;

  // Returns the bytes that its living buffers of a category hold.
  size_t allocated(Category category) const { return allocated_[static_cast<size_t>(category)]; }

 private:
  friend class Buffer;
  std::array<std::atomic<size_t>, kCategoryCount> allocated_{};
};

// This process's own memory; large pieces lie in huge pages.
MemorySource& process_memory();

}  // namespace vitrail
