// Seconds on the steady clock, for measuring durations.
#pragma once

#include <chrono>

namespace vitrail {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace vitrail
