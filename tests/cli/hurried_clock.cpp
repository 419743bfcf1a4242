#include "hurried_clock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace {
constexpr time_t kStep = 20;  // seconds between two looks
thread_local bool hurries = false;
thread_local time_t ahead = 0;
}  // namespace

// What the standard library asks for the time, in place of the C library's function of this name.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long failed = ::syscall(SYS_clock_gettime, clock, time);
  if (failed == 0 && hurries && clock == CLOCK_MONOTONIC) time->tv_sec += ahead += kStep;
  return static_cast<int>(failed);
}

namespace vitrail::cli {

HurriedClock::HurriedClock() {
  hurries = true;
}
HurriedClock::~HurriedClock() {
  hurries = false;
  ahead = 0;
}

}  // namespace vitrail::cli
