// The allocator of a Buffer whose bytes are not this process's own, such as a device's memory. Devices
// implement it; it knows nothing of shapes or categories.
#pragma once

#include <cstddef>

namespace vitrail {

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual std::byte* allocate(size_t bytes) = 0;  // aligned for any kernel; null when memory is exhausted
  virtual void release(std::byte* data) = 0;
};

}  // namespace vitrail
