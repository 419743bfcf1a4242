// A wish to stop: while a SignalGuard lives, a signal that asks the program to end is remembered instead of
// ending it. Batch systems send several (a warning, then the end; to the process and to its group): only
// SIGINT, a second or more after the first signal, ends the program at once. For commands that work through a
// list or can go on later.
#pragma once

#include <csignal>
#include <cstddef>
#include <iterator>

namespace vitrail::cli {

// Slurm's warning and its end, systemd's end, a closed terminal, a used-up limit of processor time.
inline constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU};

class SignalGuard {
 public:
  SignalGuard();
  // Once a signal came, the program is ending: those that follow must not change how.
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  bool wanted() const;
  // Error(kStopped) when a signal came and something is left to do.
  void check(size_t done, size_t total) const;

 private:
  struct sigaction before_[std::size(kStopSignals)];
};

}  // namespace vitrail::cli
