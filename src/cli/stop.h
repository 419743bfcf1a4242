// A wish to stop: while a StopWatch lives, the first SIGINT, SIGTERM or SIGUSR1 is remembered instead of
// ending the program; the second ends it at once. For commands that work through a list or can go on later.
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

  bool wanted() const;
  // Error(kStopped) when a signal came and something is left to do.
  void check(size_t done, size_t total) const;

 private:
  struct sigaction before_[3];
};

}  // namespace vitrail::cli
