#include "base/rng.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

namespace vitrail {

namespace {

constexpr size_t kBlock = 256;

// Evaluates a polynomial; its last coefficient is the constant one.
template <size_t N>
double horner(double x, const double (&coefficients)[N]) {
  double sum = coefficients[0];
  for (size_t i = 1; i < N; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// Returns log(u) for u inside (0, 1), to 2e-15 of its size, in a form that compilers vectorise. The mantissa
// m is taken between sqrt(1/2) and sqrt(2), where log(m) = 2 artanh((m - 1) / (m + 1)) converges quickly.
double log_of(double u) {
  constexpr uint64_t kOne = std::bit_cast<uint64_t>(1.0), kRootHalf = 0x3FE6A09E00000000;
  constexpr uint64_t kMantissa = 0xFFFFFFFFFFFFF, kInteger = std::bit_cast<uint64_t>(0x1p52);
  constexpr double kSeries[] = {1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1};
  const uint64_t bits = std::bit_cast<uint64_t>(u) + (kOne - kRootHalf);
  const double exponent = std::bit_cast<double>((bits >> 52) | kInteger) - (0x1p52 + 1023);
  const double mantissa = std::bit_cast<double>((bits & kMantissa) + kRootHalf);
  const double ratio = (mantissa - 1) / (mantissa + 1);
  return exponent * std::numbers::ln2 + 2 * ratio * horner(ratio * ratio, kSeries);
}

// Returns cos(2 pi turn) for a turn inside (0, 1), to 2e-13: it is 2 sin^2(pi (turn - 1/2)) - 1.
double cos_of(double turn) {
  constexpr double kSeries[] = {1. / 355687428096000,
                                -1. / 1307674368000,
                                1. / 6227020800,
                                -1. / 39916800,
                                1. / 362880,
                                -1. / 5040,
                                1. / 120,
                                -1. / 6,
                                1};
  const double angle = std::numbers::pi * (turn - 0.5);
  const double sine = angle * horner(angle * angle, kSeries);
  return 2 * sine * sine - 1;
}

void draw_block(uint64_t key, uint64_t first, std::span<double> values) {
  std::array<double, kBlock> turns;
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) {
    values[i] = uniform01(key, 2 * (first + i));
    turns[i] = uniform01(key, 2 * (first + i) + 1);
  }
  // A root may set errno, so it stands in a loop of its own and the other two are vectorised.
  for (size_t i = 0; i < count; ++i) values[i] = -2 * log_of(values[i]);
  for (size_t i = 0; i < count; ++i) values[i] = std::sqrt(values[i]);
  for (size_t i = 0; i < count; ++i) values[i] *= cos_of(turns[i]);
}

}  // namespace

double uniform01(uint64_t key, uint64_t index) {
  return (static_cast<double>(counter_hash(key, index) >> 11) + 0.5) * 0x1p-53;
}

void draw_normals(uint64_t key, uint64_t first, std::span<double> values) {
  for (size_t i = 0; i < values.size(); i += kBlock)
    draw_block(key, first + i, values.subspan(i, std::min(kBlock, values.size() - i)));
}

void draw_cut_normals(uint64_t key, uint64_t first, std::span<double> values) {
  draw_normals(counter_hash(key, 0), first, values);
  for (size_t i = 0; i < values.size(); ++i)
    for (uint64_t attempt = 1; std::abs(values[i]) > 2; ++attempt)
      draw_normals(counter_hash(key, attempt), first + i, values.subspan(i, 1));
}

}  // namespace vitrail
