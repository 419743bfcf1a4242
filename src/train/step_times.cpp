#include "train/step_times.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/timing.h"
#include "telemetry/format.h"

namespace vitrail {

void UpdateSeconds::add(double seconds) {
  if (count_++ == 0) return;
  if (recent_.size() < kKept)
    recent_.push_back(seconds);
  else
    recent_[count_ % kKept] = seconds;
}

std::string UpdateSeconds::text(bool alone) const {
  if (predicted_ <= 0 || recent_.empty()) return "";
  const double measured = spread_of(recent_).median, off = measured / predicted_ - 1;
  return strf("update: %s predicted%s, %s measured (median of %zu): %.1f %% %s",
              format_seconds(predicted_).c_str(), alone ? "" : " without what ranks exchange",
              format_seconds(measured).c_str(), recent_.size(), 100 * std::abs(off),
              off < 0 ? "shorter" : "longer");
}

namespace {

// The order of a rank's numbers.
enum Number : size_t { kCompute, kExposed, kDataWait, kHidden };

std::vector<CollectiveTime> by_kind(const CollectiveTimes& times) {
  std::vector<CollectiveTime> list;
  for (size_t i = 0; i < times.kinds.size(); ++i) {
    const CollectiveTimes::Kind& kind = times.kinds[i];
    const CollectiveOp op({.kind = static_cast<CollectiveKind>(i)});
    if (kind.count > 0) list.push_back({std::string(op.kind()), kind.count, kind.bytes, kind.seconds});
  }
  return list;
}

}  // namespace

StepTimes::StepTimes(int ranks) {
  interval_.ranks.resize(static_cast<size_t>(ranks));
  total_.ranks.resize(static_cast<size_t>(ranks));
}

StepTimes::Numbers StepTimes::end_update(const CollectiveTimes& collectives, double data_wait_s) {
  const auto now = Clock::now();
  const double all = std::chrono::duration<double>(now - std::exchange(since_, now)).count();
  const double exposed = collectives.exposed_s + std::exchange(exchanged_s_, 0);
  collectives_.add(collectives);
  Numbers numbers = {};
  numbers[kCompute] = std::max(0.0, all - exposed - data_wait_s);
  numbers[kExposed] = exposed;
  numbers[kDataWait] = data_wait_s;
  numbers[kHidden] = collectives.hidden_s();
  return numbers;
}

std::vector<double> StepTimes::computes_of(std::span<const double> of_all) {
  std::vector<double> computes;
  for (size_t at = kCompute; at < of_all.size(); at += kNumbers) computes.push_back(of_all[at]);
  return computes;
}

// A rank with less work of its own than the slowest has waited for it, somewhere in the update.
void StepTimes::add(std::span<const double> of_all) {
  VT_CHECK(of_all.size() == kNumbers * interval_.ranks.size(), "%zu numbers", of_all.size());
  const auto own_work = [&](size_t r) {
    return of_all[r * kNumbers + kCompute] + of_all[r * kNumbers + kDataWait];
  };
  double most = 0;
  for (size_t r = 0; r < interval_.ranks.size(); ++r) most = std::max(most, own_work(r));
  for (size_t r = 0; r < interval_.ranks.size(); ++r) {
    const auto numbers = of_all.subspan(r * kNumbers, kNumbers);
    interval_.ranks[r].add({.compute_s = numbers[kCompute],
                            .exposed_s = numbers[kExposed],
                            .data_wait_s = numbers[kDataWait],
                            .hidden_s = numbers[kHidden],
                            .imbalance_s = most - own_work(r)});
  }
  ++interval_.updates;
}

TimingStatus StepTimes::take(int64_t step) {
  TimingStatus taken = interval_;
  taken.step = step;
  taken.time = unix_seconds();
  taken.collectives = by_kind(std::exchange(collectives_, {}));
  // The wait in the exchange after the last update is in the next interval.
  for (RankTime& rank : taken.ranks) rank.imbalance_s = std::min(rank.imbalance_s, rank.exposed_s);
  interval_ = {};
  interval_.ranks.resize(taken.ranks.size());
  total_.add(taken);
  return taken;
}

}  // namespace vitrail
