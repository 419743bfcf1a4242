// Measures where the time of updates goes, on this rank and by what it is told on all others: compute,
// communication exposed and hidden, the wait for data, imbalance. It reads clocks and adds up; the numbers of
// other ranks come in an exchange that is made anyway.
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/timing.h"
#include "runtime/collectives.h"
#include "telemetry/rank_times.h"

namespace vitrail {

class StepTimes {
 public:
  static constexpr size_t kNumbers = 4;  // of a rank and an update
  using Numbers = std::array<double, kNumbers>;

  // A rank's own work: neither communication nor the wait for data.
  static double compute_of(const Numbers& numbers) { return numbers[0]; }
  // Returns the seconds each rank computed, from the numbers of all.
  static std::vector<double> computes_of(std::span<const double> of_all);

  explicit StepTimes(int ranks);

  // Updates begin, or go on after something that is none of them: an evaluation, a checkpoint.
  void start() {
    since_ = Clock::now();
    exchanged_s_ = 0;
  }
  void pause() { paused_ = Clock::now(); }
  void resume() { since_ += Clock::now() - paused_; }

  // Ends an update of this rank. What it does from here on belongs to the next one.
  Numbers end_update(const CollectiveTimes& collectives, double data_wait_s);
  // Counts the exchange that ends an update, in the next one: its length is not known within it.
  void exchanged(double seconds) { exchanged_s_ += seconds; }
  // Adds the numbers of all ranks, kNumbers each.
  void add(std::span<const double> of_all);

  // Returns the updates since the last call.
  TimingStatus take(int64_t step);
  // Returns those of all calls together.
  const TimingStatus& total() const { return total_; }

 private:
  Clock::time_point since_ = Clock::now(), paused_;
  double exchanged_s_ = 0;
  TimingStatus interval_, total_;
  CollectiveTimes collectives_;  // of the interval
};

// The seconds of whole updates of this process, set against what was predicted before the first.
class UpdateSeconds {
 public:
  explicit UpdateSeconds(double predicted = 0) : predicted_(predicted) {}

  // The first update, which also warms up, does not count.
  void add(double seconds);
  // "update: 12.1 ms predicted, 12.9 ms measured (median of 8): 6.6 % longer"; empty where either is not
  // known.
  std::string text(bool alone) const;

 private:
  static constexpr size_t kKept = 1024;  // the last ones
  double predicted_;                     // 0: not known
  size_t count_ = 0;
  std::vector<double> recent_;
};

// The phases of a run's start, timed one after another.
class StartTimes {
 public:
  using Phases = std::vector<std::pair<std::string, double>>;
  explicit StartTimes(Phases before) : phases_(std::move(before)) {}

  void add(const char* phase, double seconds) { phases_.emplace_back(phase, seconds); }
  // Returns what `work` returns.
  template <typename Work>
  auto timed(const char* phase, const Work& work) {
    const Timed clock{*this, phase};
    return work();
  }
  const Phases& phases() const { return phases_; }

 private:
  struct Timed {
    StartTimes& times;
    const char* phase;
    Clock::time_point start = Clock::now();
    Timed(StartTimes& of, const char* name) : times(of), phase(name) {}
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    ~Timed() { times.add(phase, seconds_since(start)); }
  };
  Phases phases_;
};

}  // namespace vitrail
