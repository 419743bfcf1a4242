// Computes how far a correct kernel's result may lie from the reference's: the roundings of a kernel are
// propagated through the op element by element. Sums are kept in f32; the intermediate results rounded to 16
// bits are those the kernel declares (Rounding) and the result itself. It knows neither kernels nor devices.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "backend/kernel.h"

namespace vitrail {

using Values = std::vector<double>;

// The error model of a value, one number per element in each; empty: the values are exact.
struct Noise {
  Values bound;         // the largest error from roundings of the element itself
  Values variance;      // the mean square error from roundings of the many terms of a sum
  Values typical = {};  // the root mean square of the errors below the bound; empty: spread evenly up to it

  bool exact() const { return bound.empty(); }
  double mean_square(size_t i) const {
    if (exact()) return 0;
    return (typical.empty() ? bound[i] * bound[i] / 3 : typical[i] * typical[i]) + variance[i];
  }
  // Adds an error that is spread evenly up to `most`.
  void add_error(size_t i, double most) {
    bound[i] += most;
    if (!typical.empty()) typical[i] += most / std::sqrt(3.0);
  }
};

// A value as the reference computes it, in f64.
struct Known {
  Shape shape;
  Values values;
  Noise noise = {};
};

// Holds what the noise of a node depends on. `ins` are its inputs, whose types are in `descs`. Of attention's
// results the rows of `tokens` alone may be asked for, where a sequence is too long for all; none: all.
struct NoiseQuery {
  const Op& op;
  DescSpan descs;
  std::span<const Known> ins;
  Rounding rounding;
  ThreadPool& pool;
  std::span<const int64_t> tokens = {};
};

// Returns the noise of every result in `wanted` (outputs, then updated inputs, of `types`), their own
// rounding included.
std::vector<Noise> result_noise(const NoiseQuery& query, std::span<const Known> wanted,
                                std::span<const DType> types);

// The largest error found as a share of what is allowed: above 1 the result is wrong. An element may be off
// by twice its bound and ten times its standard deviation; the root mean square of every part of a result
// (queries, keys and values apart) by two and a half times what is expected.
struct Verdict {
  double share = 0;
  std::string where;  // the worst element: "element 17: 0.5, expected 0.25 +- 0.001"
  size_t element = 0;
};
Verdict judge(const Known& wanted, std::span<const double> found);

}  // namespace vitrail
