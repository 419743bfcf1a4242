// How far a right kernel's result may lie from the reference's: the roundings a kernel makes, followed
// through the op element by element. Sums are kept in f32; what else is rounded to 16 bits on the way is what
// the kernel declares (Rounding) and the result itself. It knows neither kernels nor devices.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/kernel.h"

namespace vitrail {

using Values = std::vector<double>;

// Both of one element each; empty: the values are exact.
struct Noise {
  Values bound;     // what roundings of the element itself may move it by
  Values variance;  // the mean square of what the roundings of a sum's many terms leave of themselves

  bool exact() const { return bound.empty(); }
  double mean_square(size_t i) const { return exact() ? 0 : bound[i] * bound[i] / 3 + variance[i]; }
};

// A value as the reference has it, in double.
struct Known {
  Shape shape;
  Values values;
  Noise noise = {};
};

// A node as its noise depends on it. `ins` are what it reads, in the types `descs` says.
struct NoiseQuery {
  const Op& op;
  DescSpan descs;
  std::span<const Known> ins;
  Rounding rounding;
  ThreadPool& pool;
};

// The noise of every result in `wanted` (outputs, then updated inputs, of `types`), their own rounding
// included.
std::vector<Noise> result_noise(const NoiseQuery& query, std::span<const Known> wanted,
                                std::span<const DType> types);

// The largest error found as a share of what is allowed: over 1 the result is wrong. An element may be off by
// twice its bound and ten times its deviation; the root mean square of every part of a result (queries, keys
// and values apart) by two and a half times what is expected.
struct Verdict {
  double share = 0;
  std::string where;  // of it: "element 17: 0.5, expected 0.25 +- 0.001"
};
Verdict judge(const Known& wanted, std::span<const double> found);

}  // namespace vitrail
