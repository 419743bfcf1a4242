#include "telemetry/plot/axis.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace vitrail {

namespace {
constexpr double kLargest = 1e200;  // beyond it differences and ratios of values overflow

// Returns the round distance (1, 2 or 5 times a power of ten) that divides `span` into at most about `wanted`
// parts.
double round_distance(double span, int wanted) {
  const double rough = span / wanted, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// Large values are written in thousands, millions, ...
std::string short_label(double value) {
  const double size = std::fabs(value);
  if (size >= 1e15 || size < 1e4) return strf("%g", value);
  if (size >= 1e12) return strf("%gT", value / 1e12);
  if (size >= 1e9) return strf("%gG", value / 1e9);
  return size >= 1e6 ? strf("%gM", value / 1e6) : strf("%gk", value / 1e3);
}

// Writes as many decimals as the distance between ticks needs.
std::string tick_label(double value, double distance) {
  if (std::fabs(value) < distance * 1e-6) return "0";
  const double size = std::max(std::fabs(value), distance);
  if (distance >= 1e9) return short_label(std::round(value / distance) * distance);
  if (distance >= 1e6) return strf("%gM", std::round(value / distance) * distance / 1e6);
  if (size >= 1e4 && distance >= 100) return strf("%gk", std::round(value / distance) * distance / 1e3);
  if (size < 1e-3) return strf("%g", value);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(distance) - 1e-9)), 0, 9);
  return strf("%.*f", decimals, value);
}
}  // namespace

void ChartAxis::include(double value) {
  if (!holds(value)) return;
  low_ = empty_ ? value : std::min(low_, value);
  high_ = empty_ ? value : std::max(high_, value);
  empty_ = false;
}

void ChartAxis::finish(int wanted, bool round) {
  if (empty_) {
    low_ = logarithmic_ ? 1 : 0;
    high_ = logarithmic_ ? 10 : 1;
  }
  if (logarithmic_)
    logarithmic_ticks(wanted, round);
  else
    linear_ticks(wanted, round);
}

void ChartAxis::linear_ticks(int wanted, bool round) {
  // A single value, or values closer than a double can resolve, get a margin.
  const double size = std::max(std::fabs(low_), std::fabs(high_));
  if (high_ - low_ <= size * 1e-9) {
    const double room = size > 0 ? size * 0.1 : 1;
    low_ -= room;
    high_ += room;
  }
  const double distance = round_distance(high_ - low_, wanted);
  const double first = std::floor(low_ / distance + 1e-9), last = std::ceil(high_ / distance - 1e-9);
  for (int i = 0; i <= static_cast<int>(last - first); ++i) {
    const double value = (first + i) * distance;
    ticks_.push_back({value, tick_label(value, distance)});
  }
  if (round) {
    low_ = first * distance;
    high_ = last * distance;
  } else {
    std::erase_if(ticks_, [&](const Tick& t) {
      return t.value < low_ - distance * 1e-6 || t.value > high_ + distance * 1e-6;
    });
  }
}

// Chooses powers of ten, with 2 and 5 times them when there are few, thinned out when there are many.
void ChartAxis::logarithmic_ticks(int wanted, bool round) {
  if (high_ <= low_ * (1 + 1e-9)) {
    low_ /= 2;
    high_ *= 2;
  }
  const double decades = std::log10(high_) - std::log10(low_);
  const int every = std::max(1, static_cast<int>(std::ceil(decades / wanted)));
  const std::vector<double> factors = decades < 0.7
                                          ? std::vector<double>{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}
                                      : decades < 3 ? std::vector<double>{1, 2, 5}
                                                    : std::vector<double>{1};
  double below = 0, above = 0;  // the nearest ticks outside the values
  for (int power = static_cast<int>(std::floor(std::log10(low_))); above <= 0; ++power) {
    for (const double factor : factors) {
      const double value = factor * std::pow(10, power);
      if (power % every != 0) continue;
      if (value <= low_ * (1 + 1e-9)) below = value;
      if (value > low_ * (1 + 1e-9) && value < high_ * (1 - 1e-9))
        ticks_.push_back({value, short_label(value)});
      if (value >= high_ * (1 - 1e-9) && above <= 0) above = value;
    }
  }
  if (!round) return;
  if (below > 0) {
    low_ = below;
    ticks_.insert(ticks_.begin(), {below, short_label(below)});
  }
  high_ = above;
  ticks_.push_back({above, short_label(above)});
}

void ChartAxis::mark(const std::vector<double>& values) {
  ticks_.clear();
  for (const double value : values)
    if (holds(value) && value >= low_ && value <= high_) ticks_.push_back({value, short_label(value)});
}

bool ChartAxis::holds(double value) const {
  return std::fabs(value) <= kLargest && (!logarithmic_ || value >= 1 / kLargest);
}

double ChartAxis::scaled(double value) const {
  return logarithmic_ ? std::log(value) : value;
}

double ChartAxis::value_at(double position) const {
  const double at = scaled(low_) + position * (scaled(high_) - scaled(low_));
  return logarithmic_ ? std::exp(at) : at;
}

double ChartAxis::position(double value) const {
  return (scaled(value) - scaled(low_)) / (scaled(high_) - scaled(low_));
}

}  // namespace vitrail
