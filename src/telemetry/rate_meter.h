// How fast this process goes and how long it will still take, on the steady clock. Counts only what it saw
// itself, so a resumed run is not flattered by steps done before.
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

  // One more update, of so many images.
  void step(int64_t images, Time now = Clock::now());
  // Time not spent on updates (evaluation, checkpoints) that ends now: it lowers no rate, but an equal share
  // of it is expected of the steps to come.
  void pause(double seconds);

  // Over the last window; NaN before the first step.
  double images_per_second() const;
  double steps_per_second() const;
  double eta_seconds(int64_t remaining_steps) const;

 private:
  struct Mark {
    double seconds = 0;  // since the start, pauses taken out
    int64_t steps = 0, images = 0;
  };

  Time start_;
  double window_s_, paused_ = 0;
  Mark last_;
  std::deque<Mark> marks_;  // oldest first, about sixty a window
};

}  // namespace vitrail
