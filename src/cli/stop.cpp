#include "cli/stop.h"

#include "base/error.h"

namespace vitrail::cli {

namespace {
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};
volatile std::sig_atomic_t signalled = 0;

void remember(int) {
  signalled = 1;
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}
}  // namespace

StopWatch::StopWatch() {
  signalled = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    // What the caller told us to ignore (nohup, background jobs) stays ignored.
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopWatch::~StopWatch() {
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

bool StopWatch::wanted() const {
  return signalled != 0;
}

void StopWatch::check(size_t done, size_t total) const {
  if (signalled && done < total)
    throw Error(ErrorKind::kStopped, strf("stopped on request after %zu of %zu pictures", done, total),
                "what was written is whole; run again with the rest of the list");
}

}  // namespace vitrail::cli
