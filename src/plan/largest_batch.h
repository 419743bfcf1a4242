// The largest batch that still fits, found in a few evaluations, each of which plans a whole program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "telemetry/format.h"

namespace vitrail {

inline constexpr int64_t kLargestBatch = 65536;  // no larger one is taken or tried

// Returns "65,536 or more" where the search ended at its limit, whose multiples of `unit` end below it.
inline std::string largest_batch_text(int64_t batch, int64_t unit = 1) {
  return format_integer(batch) + (batch > kLargestBatch - unit ? " or more" : "");
}

// Returns a multiple of `unit` whose need(batch), which must not fall as the batch grows, stays within
// `bytes`; 0 when not even one unit does. The result is exact to 1/64. Memory is nearly a constant plus a
// part per image, so a line through two evaluations comes close to the limit.
template <typename Need>
int64_t largest_batch(int64_t unit, size_t bytes, const Need& need) {
  struct Answer {
    int64_t units;
    double bytes;
  };
  const auto ask = [&](int64_t units) { return Answer{units, static_cast<double>(need(units * unit))}; };
  const auto room = static_cast<double>(bytes);
  const int64_t most = std::max<int64_t>(1, kLargestBatch / unit);
  Answer good = ask(1);
  if (good.bytes > room) return 0;
  if (most == 1) return unit;
  Answer bad = ask(std::min<int64_t>(16, most));
  while (bad.bytes <= room && bad.units < most) {
    // The next trial lies beyond the limit that the line predicts, by the allowed error.
    const double slope = (bad.bytes - good.bytes) / static_cast<double>(bad.units - good.units);
    const double end = slope > 0 ? static_cast<double>(bad.units) + (room - bad.bytes) / slope : 1e9;
    good = bad;
    bad = ask(static_cast<int64_t>(std::min(end * (1 + 1.0 / 128) + 1, static_cast<double>(most))));
  }
  if (bad.bytes <= room) return bad.units * unit;
  for (bool halve = false; bad.units - good.units > std::max<int64_t>(1, good.units / 64); halve = !halve) {
    const double share = halve ? 0.5 : (room - good.bytes) / (bad.bytes - good.bytes);
    const auto step = static_cast<int64_t>(share * static_cast<double>(bad.units - good.units));
    const Answer middle = ask(good.units + std::clamp<int64_t>(step, 1, bad.units - good.units - 1));
    (middle.bytes <= room ? good : bad) = middle;
  }
  return good.units * unit;
}

// Returns the micro-batches that divide so many images, as multiples of `unit`, smallest first.
inline std::vector<int64_t> micro_batches(int64_t images, int64_t unit) {
  std::vector<int64_t> sizes;
  const auto add = [&](int64_t size) {
    if (size % unit == 0) sizes.push_back(size);
  };
  for (int64_t low = 1; low * low <= images; ++low) {
    if (images % low != 0) continue;
    add(low);
    if (low * low < images) add(images / low);
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

// Returns the largest of these sizes, smallest first, with which fits(size) is true; 0: with none. Memory
// grows with the size, so after the largest the sizes are halved until one is left.
template <typename Fits>
int64_t largest_fitting(const std::vector<int64_t>& sizes, const Fits& fits) {
  size_t low = 0, high = sizes.size();
  for (size_t at = high - 1; low < high; at = (low + high) / 2) {
    if (fits(sizes[at]))
      low = at + 1;
    else
      high = at;
  }
  return low > 0 ? sizes[low - 1] : 0;
}

}  // namespace vitrail
