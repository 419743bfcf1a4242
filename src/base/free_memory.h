// Finds how much memory this process may still take, and what sets that bound: the machine, a control group
// (a container, a job of a batch system), or a limit of the process itself. Knows nothing of what the memory
// is for.
#pragma once

#include <cstddef>
#include <string>

namespace vitrail {

struct FreeMemory {
  size_t bytes = 0;                            // 0: unknown
  std::string where = "free on this machine";  // completes "2 GiB is ..."
  int ranks = 1;                               // `bytes` is what one of so many may take

  // Returns what one of so many ranks that share it may take.
  FreeMemory shared_by(int sharers) const;
  // Returns advice to put behind other advice; empty where it is nobody's share.
  std::string advice() const;
};

// The smallest of: what the kernel calls available, with free swap; what is left under the memory limit of
// every control group above this process (v1 or v2; files it has cached count as free); what is left of its
// address space (ulimit -v) and of its data (ulimit -d). `root` is where /proc and /sys lie, for tests.
FreeMemory free_memory(const std::string& root = "");

std::string mib(size_t bytes);  // "2048.0 MiB"

// Throws Error(kMemory) when `what` would take `bytes` and fewer are free.
void require_free_memory(size_t bytes, const std::string& what);

}  // namespace vitrail
