// A process that may take little memory more, for tests of what happens then.
#pragma once
#include <sys/resource.h>

#include <fstream>

namespace vitrail {

inline bool has_room_of_its_own() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;  // sanitizers reserve the address space that is limited here
#else
  return true;
#endif
}

// Leaves this process, which must be one of its own, so many bytes.
inline void leave_memory(size_t bytes) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * 4096 + bytes;
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace vitrail
