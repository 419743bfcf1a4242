// Where a Buffer's bytes come from when they are not this process's own: a device's memory. Implemented by
// devices; knows nothing of shapes or categories.
#pragma once

#include <cstddef>

namespace vitrail {

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual std::byte* allocate(size_t bytes) = 0;  // aligned for any kernel; null when there is no more
  virtual void release(std::byte* data) = 0;
};

}  // namespace vitrail
