// A wish to stop: while a StopWatch lives, the first SIGINT or SIGTERM is remembered instead of ending the
// program; the second ends it at once. For commands that work through a list.
#pragma once

#include <csignal>
#include <cstddef>

namespace vitrail::cli {

class StopWatch {
 public:
  StopWatch();
  ~StopWatch();
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  // Error(kStopped) when a signal came and something is left to do.
  void check(size_t done, size_t total) const;

 private:
  struct sigaction before_[2];
};

}  // namespace vitrail::cli
