// The largest batch that still fits, by asking a few times. Used by plan, for inference and for training.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vitrail::cli {

inline constexpr int64_t kLargestBatch = 65536;

// A multiple of `unit`; 0 when not even one unit fits. Exact to 1/64: asking is what takes time. `fits` must
// hold for every batch below one that fits.
template <typename Fits>
int64_t largest_batch(int64_t unit, const Fits& fits) {
  int64_t good = 0, bad = 1;  // in units
  while (bad <= kLargestBatch / unit && fits(bad * unit)) good = bad, bad *= 2;
  if (bad > kLargestBatch / unit) return good * unit;
  while (bad - good > std::max<int64_t>(1, good / 64)) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle * unit) ? good : bad) = middle;
  }
  return good * unit;
}

}  // namespace vitrail::cli
