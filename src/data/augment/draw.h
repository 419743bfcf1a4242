// A stream of random numbers named by (seed, epoch, position, op): the draws of an augmentation depend on
// nothing else, so any number of workers or ranks sees the same images. Knows nothing of what the numbers are
// for.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "base/rng.h"

namespace vitrail {

// Combines parts to a key; every part changes the whole stream.
constexpr uint64_t draw_key(uint64_t seed, uint64_t epoch, uint64_t position, std::string_view op) {
  return counter_hash(counter_hash(counter_hash(seed, epoch), position), name_key(op));
}

class Draw {
 public:
  explicit constexpr Draw(uint64_t key) : key_(key) {}
  constexpr Draw(uint64_t seed, int64_t epoch, int64_t position, std::string_view op)
      : key_(draw_key(seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(position), op)) {}

  uint64_t bits() { return counter_hash(key_, index_++); }

  // Draws from [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  bool chance(double probability) { return uniform() < probability; }

  // Draws from [low, high], both included. The remainder's bias is below (high - low) / 2^64.
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % (static_cast<uint64_t>(high - low) + 1));
  }

  // Draws from N(0, 1) (Box and Muller; the second number is dropped).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  // Draws from Beta(alpha, alpha), alpha > 0. It works in logarithms, since both gammas may underflow when
  // alpha is small.
  double beta(double alpha) {
    const double first = log_gamma_variate(alpha), second = log_gamma_variate(alpha);
    return 1 / (1 + std::exp(second - first));
  }

 private:
  // Follows Marsaglia and Tsang 2000; for shape < 1 a variate of shape + 1 times u^(1/shape).
  double log_gamma_variate(double shape) {
    if (shape < 1) {
      const double rest = std::log(1 - uniform()) / shape;
      return log_gamma_variate(shape + 1) + rest;
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal(), v = std::pow(1 + c * x, 3);
      if (v > 0 && std::log(1 - uniform()) < 0.5 * x * x + d * (1 - v + std::log(v))) return std::log(d * v);
    }
  }

  uint64_t key_;
  uint64_t index_ = 0;
};

}  // namespace vitrail
