// Seconds on the steady clock and on the wall clock, and repeated measurements summed up as every benchmark
// reports them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace vitrail {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns now on the steady clock, whose zero means nothing: for differences.
inline double now_s() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Returns now on the wall clock, since 1970.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

struct Spread {
  size_t count = 0;
  double min = 0, median = 0, p90 = 0, max = 0;
};
// Returns zeros when there are no values. Quantiles lie between neighbours in proportion.
inline Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double share) {
    const double at = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<size_t>(at);
    const size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
  };
  return {values.size(), values.front(), quantile(0.5), quantile(0.9), values.back()};
}

}  // namespace vitrail
