// Measures how fast this process trains and how long it will still take, on the steady clock. It counts only
// the steps of this process, so steps done before a resume do not distort the rate.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace vitrail {

class RateMeter {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  explicit RateMeter(Time start = Clock::now(), double window_s = 30);

  // Counts one more update, of so many images.
  void step(int64_t images, Time now = Clock::now());
  // Counts time not spent on updates (evaluation, checkpoints) that ends now: it lowers no rate, but an equal
  // share of it is expected for the steps to come.
  void pause(double seconds);

  // The rate over the last window; NaN before the first step.
  double images_per_second() const;
  double steps_per_second() const;
  double eta_seconds(int64_t remaining_steps) const;

 private:
  struct Mark {
    double seconds = 0;  // since the start, without pauses
    int64_t steps = 0, images = 0;
  };

  Time start_;
  double window_s_, paused_ = 0;
  Mark last_;
  std::deque<Mark> marks_;  // oldest first, about sixty per window
};

}  // namespace vitrail
