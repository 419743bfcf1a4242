// Defines what every update op shares: the per-step numbers written by step_control, and how weight decay
// enters an update. An update rule is stated once, here, for the op and for its kernels. Knows no optimizer.
#pragma once

#include "base/enum_names.h"
#include "graph/op.h"

namespace vitrail {

// The "hyper" input, f64 [Z4], filled before each update.
enum HyperSlot { kHyperLr, kHyperDecay, kHyperEma, kHyperSpare, kHyperCount };

// Holds what step_control passes to every update, f64 [Z6].
struct StepValues {
  double skip = 0;         // 1: nothing may change but the gradient sums, which become zero
  double grad_factor = 1;  // gradient = sum times this: clipping and the loss scale
  double lr = 0;           // before a parameter's own lr_scale
  double decay = 1;        // multiplies every weight decay
  double step = 0;         // which applied update this is, from 1
  double grad_norm = 0;    // over all gradients, unscaled, before clipping

  static StepValues read(const double* control);
  void write(double* control) const;
};
inline constexpr int64_t kControlCount = 6;

enum class DecayStyle {
  kUsual,      // the optimizer's own default; resolved before an op is made
  kCoupled,    // gradient += wd w
  kDecoupled,  // w -= lr wd w
  kSchedule    // w -= (lr / base lr) wd w: follows the schedule, not the size of lr
};
template <>
struct EnumNames<DecayStyle> {
  static constexpr const char* names[] = {"usual", "coupled", "decoupled", "schedule"};
};

// The learning rate and decay factors of one parameter.
struct UpdateScale {
  double lr_scale = 1;
  double weight_decay = 0;
  DecayStyle decay = DecayStyle::kDecoupled;
  double base_lr = 1;  // what kSchedule divides by

  double lr(const StepValues& step) const { return step.lr * lr_scale; }
  double coupled(const StepValues& step) const;  // gradient += this times w
  double shrink(const StepValues& step) const;   // w *= 1 - this
  std::string text() const;                      // for attributes()
};

// The numbers of an optimizer's config that an update's formula may use. An optimizer's op is made from an
// UpdateScale and these, and its states() is how many tensors it keeps beside a parameter: none, m, or m and
// v.
struct UpdateSettings {
  double momentum = 0;
  bool nesterov = false;
  double beta1 = 0, beta2 = 0, eps = 0;
  bool adapt_all = false;
  bool bias_correction = true;
  double trust_min = 0, trust_max = 0;  // 0: no limit
};

// Checks the inputs of an update: param, gradient sum, `states` tensors of the parameter's shape, control.
void expect_update(const Op& op, DescSpan ins, int states);
TensorDesc hyper_desc();
TensorDesc control_desc();

}  // namespace vitrail
