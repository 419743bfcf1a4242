#include "telemetry/rate_meter.h"

#include <limits>

namespace vitrail {

namespace {
constexpr double kMarksPerWindow = 60;

double ratio(int64_t amount, double seconds) {
  return seconds > 0 ? static_cast<double>(amount) / seconds : std::numeric_limits<double>::quiet_NaN();
}
}  // namespace

RateMeter::RateMeter(Time start, double window_s) : start_(start), window_s_(window_s), marks_(1) {}

void RateMeter::step(int64_t images, Time now) {
  last_.seconds = std::chrono::duration<double>(now - start_).count() - paused_;
  last_.steps += 1;
  last_.images += images;
  if (last_.seconds - marks_.back().seconds >= window_s_ / kMarksPerWindow) marks_.push_back(last_);
  // At least one whole step lies after the oldest mark, however long it took.
  while (marks_.size() > 1 && last_.steps > marks_[1].steps && last_.seconds - marks_[1].seconds >= window_s_)
    marks_.pop_front();
}

void RateMeter::pause(double seconds) {
  paused_ += seconds;
}

double RateMeter::images_per_second() const {
  const Mark& from = marks_.front();
  return ratio(last_.images - from.images, last_.seconds - from.seconds);
}

double RateMeter::steps_per_second() const {
  const Mark& from = marks_.front();
  return ratio(last_.steps - from.steps, last_.seconds - from.seconds);
}

double RateMeter::eta_seconds(int64_t remaining_steps) const {
  const double busy = static_cast<double>(remaining_steps) / steps_per_second();
  return busy * (1 + (last_.seconds > 0 ? paused_ / last_.seconds : 0));
}

}  // namespace vitrail
