#include "train/slow_ranks.h"

#include <algorithm>

#include "base/error.h"

namespace vitrail {

namespace {

constexpr double kTimes = 1.5;   // as long as usual, beyond what all ranks have in common
constexpr double kLeast = 0.02;  // seconds: of shorter updates the machine's own noise is larger

// The middle value, of an even number of them the lower one, so that it is the time of some rank.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string SlowRank::text() const {
  return strf("rank %d has been slow for %d updates: %.0f ms of its own work in each, %.0f before", rank,
              SlowRanks::kLong, 1e3 * now_s, 1e3 * before_s);
}

// Returns by how much the middle rank is slower than usual; of two ranks it is the faster one.
double SlowRanks::shared_slowness(std::span<const double> seconds) const {
  std::vector<double> times;
  for (size_t r = 0; r < rows_.size(); ++r) times.push_back(seconds[r] / std::max(rows_[r].usual_s, 1e-9));
  return std::max(1.0, lower_median(times));
}

std::vector<SlowRank> SlowRanks::add(std::span<const double> seconds) {
  VT_CHECK(seconds.size() == rows_.size(), "%zu times of %zu ranks", seconds.size(), rows_.size());
  std::vector<SlowRank> slow;
  if (updates_++ == 0) return slow;  // the first update loads, packs and allocates
  if (updates_ <= kUsual + 1) {
    for (size_t r = 0; r < rows_.size(); ++r) {
      rows_[r].first.push_back(seconds[r]);
      rows_[r].usual_s = lower_median(rows_[r].first);
    }
    return slow;
  }
  const double shared = shared_slowness(seconds);
  for (size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    const double usual = row.usual_s * shared;
    if (seconds[r] < kTimes * usual || seconds[r] < usual + kLeast) {
      row.in_a_row = 0;
      row.sum_s = 0;
      continue;
    }
    row.sum_s += seconds[r];
    if (++row.in_a_row == kLong) slow.push_back({static_cast<int>(r), row.sum_s / kLong, row.usual_s});
  }
  return slow;
}

std::vector<double> SlowRanks::usual() const {
  std::vector<double> seconds;
  for (const Row& row : rows_) seconds.push_back(row.usual_s);
  return seconds;
}

}  // namespace vitrail
