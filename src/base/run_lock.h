// One run per folder: a file `run.lock` that names its owner and is locked while the owner lives. It is taken
// before anything else in the folder is written. Knows nothing of what is in the folder.
#pragma once

#include <string>

namespace vitrail {

class RunLock {
 public:
  // Throws Error(kWrite) naming process and host when another run holds the folder, or when it cannot be
  // written.
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Says whose abandoned lock was taken over; empty otherwise.
  const std::string& note() const { return note_; }

  // Returns whether the operating system enforces the lock, on this host and on every other. Where a file
  // system cannot lock, only the file's content names the owner, and somebody may have deleted it.
  bool certain() const { return certain_; }

 private:
  bool try_take();

  std::string path_, note_;
  int fd_ = -1;
  bool certain_ = false;
};

}  // namespace vitrail
