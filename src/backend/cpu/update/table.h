// The table of the vector functions of optimizer updates at one instruction set, and their arguments.
// isa/update.cpp has the bodies and fills the table.
#pragma once

#include <cstdint>

namespace vitrail::cpu {

// The elements of one parameter in an update. The gradient is factor * sum + coupled * w, and sum becomes
// zero.
struct UpdateElements {
  float *w = nullptr, *sum = nullptr;
  int64_t count = 0;
  float factor = 1, coupled = 0;
  float shrink = 0, lr = 0;  // w -= shrink * w + lr * direction
};

// The running means of the gradient and of its square, x += rate * (gradient - x), and the direction they
// give: correction * m / (root * sqrt(v) + eps).
struct MomentElements {
  float *m = nullptr, *v = nullptr;
  float m_rate = 0, v_rate = 0;
  float correction = 1, root = 1, eps = 0;
};

struct SquareSums {
  double param = 0, update = 0;
};

struct UpdateTable {
  double (*square_sum)(const float* x, int64_t count);
  void (*sgd_update)(const UpdateElements&, float* m, float momentum, bool nesterov);  // m null: none
  void (*adam_update)(const UpdateElements&, const MomentElements&);
  void (*lion_update)(const UpdateElements&, float* m, float mix_rate, float m_rate);
  // LAMB: updates the moments and returns the squares of w and of u = direction + coupled * w; then w -= lr *
  // u.
  SquareSums (*lamb_moments)(const UpdateElements&, const MomentElements&);
  void (*lamb_update)(const UpdateElements&, const MomentElements&);
  void (*move_towards)(const float* x, float rate, int64_t count, float* mean);  // mean += rate * (x - mean)
};

}  // namespace vitrail::cpu
