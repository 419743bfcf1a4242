// The cores on which threads of this process run: those that it was given, and a thread's own among them.
// Knows neither ranks nor a container's quota.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

// The cores that this thread may run on, ascending, or could before it was bound to some of them; none where
// the system does not tell.
std::vector<int> allowed_cores();
// Returns "0-3,8" for ascending cores.
std::string cores_text(const std::vector<int>& cores);

// Binds the thread that makes it to cores until it is destroyed there; threads that are started meanwhile
// inherit that. No cores, or a system that refuses: nothing changes.
class BoundThread {
 public:
  explicit BoundThread(const std::vector<int>& cores);
  ~BoundThread();
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

 private:
  std::vector<int> before_;
  bool outermost_ = false;
};

}  // namespace vitrail
