#include "base/stop.h"

#include <ctime>
#include <iterator>

#include "base/error.h"

namespace vitrail {

namespace {

volatile std::sig_atomic_t signalled = 0;  // never reset: one command may hold several guards in turn
timespec first_signal{};                   // written by the first signal alone

// One second is long enough that a second Ctrl-C is not an echo of the first signal.
constexpr double kPatienceSeconds = 1;

double seconds_between(const timespec& from, const timespec& to) {
  return static_cast<double>(to.tv_sec - from.tv_sec) + static_cast<double>(to.tv_nsec - from.tv_nsec) / 1e9;
}

// The handler calls only async-signal-safe functions.
void remember(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (signalled == 0) {
    first_signal = now;
    signalled = 1;
  } else if (signal == SIGINT && seconds_between(first_signal, now) >= kPatienceSeconds) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGINT, &usual, nullptr);
    ::raise(SIGINT);  // delivered when this handler returns
  }
}

}  // namespace

SignalGuard::SignalGuard() {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  for (const int signal : kStopSignals) sigaddset(&action.sa_mask, signal);  // one at a time
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    ::sigaction(kStopSignals[i], nullptr, &before_[i]);
    // Signals that the caller had set to be ignored (nohup, background jobs) stay ignored.
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kStopSignals[i], &action, nullptr);
  }
}

SignalGuard::~SignalGuard() {
  if (signalled) return;
  for (size_t i = 0; i < std::size(kStopSignals); ++i) ::sigaction(kStopSignals[i], &before_[i], nullptr);
}

bool SignalGuard::wanted() const {
  return signalled != 0;
}

void SignalGuard::check(bool wanted, size_t done, size_t total) {
  if (wanted && done < total)
    throw Error(ErrorKind::kStopped, strf("stopped on request after %zu of %zu images", done, total),
                "what was written is whole; run again with the rest of the list");
}

}  // namespace vitrail
