// Sums, maxima and exponentials along one row, as softmax, attention and layernorm need them.
#pragma once

#include "backend/cpu/isa/math.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {

// The sum of f(x) over a row, in four interleaved vectors of partial sums: short chains have small rounding
// errors.
template <typename F>
inline float sum_row(const float* x, int64_t width, const F& f) {
  Vec part[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) part[j] = part[j] + f(load(x + i + j * kLanes));
  }
  for (; i < width; i += kLanes) {
    const int64_t count = width - i;
    part[0] = part[0] + keep_first(f(load_up_to(x + i, count)), count, 0.0f);
  }
  return sum_lanes((part[0] + part[1]) + (part[2] + part[3]));
}

inline float max_row(const float* x, int64_t width) {
  Vec best = set1(-__builtin_inff());
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) best = max(best, load(x + i));
  if (i < width) best = max(best, keep_first(load_some(x + i, width - i), width - i, -__builtin_inff()));
  return max_lanes(best);
}

// Computes y = exp(scale * (x - top)) and returns the sum of y; y may be x.
inline float exp_row(const float* x, int64_t width, float top, float scale, float* y) {
  Vec part[2] = {};
  const Vec top_v = set1(top), scale_v = set1(scale);
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const Vec e = exp((load(x + i + j * kLanes) - top_v) * scale_v);
      store(y + i + j * kLanes, e);
      part[j] = part[j] + e;
    }
  }
  for (; i < width; i += kLanes) {
    const int64_t count = width - i;
    const Vec e = exp((load_up_to(x + i, count) - top_v) * scale_v);
    store_up_to(y + i, e, count);
    part[0] = part[0] + keep_first(e, count, 0.0f);
  }
  return sum_lanes(part[0] + part[1]);
}

// y = f(x), y may be x; f also gets the column, to read from a second row.
template <typename F>
inline void map_row(const float* x, int64_t width, float* y, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) store(y + i, f(load(x + i), i, int64_t{kLanes}));
  if (i < width) store_some(y + i, f(load_some(x + i, width - i), i, width - i), width - i);
}

}  // namespace vitrail::cpu::VT_ISA
