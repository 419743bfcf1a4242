// The softmax of rows of attention scores. Rows lie in scratch, padded to whole vectors, so that vectors are
// always loaded and stored whole.
#pragma once

#include "backend/cpu/isa/math.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {

inline constexpr float kLog2E = 1.44269504f;

inline float max_score(const float* x, int64_t keys) {
  Vec best[2] = {set1(-__builtin_inff()), set1(-__builtin_inff())};
  int64_t j = 0;
  for (; j + 2 * kLanes <= keys; j += 2 * kLanes) {
    best[0] = max(best[0], load(x + j));
    best[1] = max(best[1], load(x + j + kLanes));
  }
  for (; j < keys; j += kLanes) best[0] = max(best[0], keep_first(load(x + j), keys - j, -__builtin_inff()));
  return max_lanes(max(best[0], best[1]));
}

// x = exp(scale * (x - top)), and 0 past the keys; f(e, j) is called with every vector of them. The exponent
// is rounded once, which costs a weight 1e-7 of its exponent: nothing where the weight counts.
template <typename F>
inline void exp_scores(float* x, int64_t keys, float scale, float top, const F& f) {
  const Vec factor = set1(scale * kLog2E), offset = set1(-top) * factor;
  const auto softmax = [&](int64_t j) { return exp2(fmadd(load(x + j), factor, offset)); };
  int64_t j = 0;
  for (; j + kLanes <= keys; j += kLanes) {
    const Vec e = softmax(j);
    store(x + j, e);
    f(e, j);
  }
  if (j < keys) {
    const Vec e = keep_first(softmax(j), keys - j, 0.0f);
    store(x + j, e);
    f(e, j);
  }
}

}  // namespace vitrail::cpu::VT_ISA
