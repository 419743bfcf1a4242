// Holds why a group of ranks has failed, once one of them has: the first text stays. Any thread may call it.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "base/error.h"

namespace vitrail {

class GroupFailure {
 public:
  void set(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!is_set_.load()) why_ = why;
    is_set_.store(true);
  }
  const std::atomic<bool>& is_set() const { return is_set_; }
  // Returns the text; empty: nobody has failed.
  std::string text() const {
    if (!is_set_.load()) return {};
    const std::lock_guard lock(mutex_);
    return why_.empty() ? "another rank has failed" : why_;
  }
  // Throws Error(kComm) with the text as it was given.
  void throw_if_set() const {
    if (!is_set_.load()) return;
    const std::lock_guard lock(mutex_);
    throw Error(ErrorKind::kComm, why_);
  }

 private:
  mutable std::mutex mutex_;
  std::string why_;
  std::atomic<bool> is_set_{false};
};

}  // namespace vitrail
