// Stopping on request: while a SignalGuard lives, a signal that would end the program is remembered instead.
// Batch systems send several (a warning, then the end; to the process and to its group), so only SIGINT, a
// second or more after the first signal, ends the program at once. Meant for commands that work through a
// list or can be resumed.
#pragma once

#include <csignal>
#include <cstddef>
#include <iterator>

namespace vitrail {

// Signals of Slurm (warning and end), of systemd, of a closed terminal, and of an exceeded limit of processor
// time.
inline constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU};

class SignalGuard {
 public:
  SignalGuard();
  // After a signal the program is ending, so the handlers stay: later signals must not change how it ends.
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  bool wanted() const;
  // Throws Error(kStopped) when a signal came, or a stop is wanted of all ranks, and work is left.
  void check(size_t done, size_t total) const { check(wanted(), done, total); }
  static void check(bool wanted, size_t done, size_t total);

 private:
  struct sigaction before_[std::size(kStopSignals)];
};

}  // namespace vitrail
