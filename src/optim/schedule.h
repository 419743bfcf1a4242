// Learning rates as pure functions of the step. Knows no optimizer and keeps no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace vitrail {

enum class ScheduleKind { kConstant, kCosine, kLinear, kStep, kPolynomial, kOneCycle };
template <>
struct EnumNames<ScheduleKind> {
  static constexpr const char* names[] = {"constant", "cosine", "linear", "step", "polynomial", "one_cycle"};
};

// The schedule's settings; lengths are in updates, and a length below 1 is a share of the run.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kCosine;
  double warmup = 0;
  double warmup_lr = 0;
  bool warmup_inside = false;
  double min_lr = 0;
  bool count_from_one = false;
  double power = 1;
  std::vector<double> milestones;
  double every = 0;
  double gamma = 0.1;
  double peak_at = 0.3;
  double start_divisor = 25;
  double end_divisor = 1e4;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("kind", c.kind, "constant, cosine, linear, step, polynomial or one_cycle");
    v("warmup", c.warmup, "updates of linear warm-up; below 1: share of the run");
    v("warmup_lr", c.warmup_lr, "learning rate the warm-up starts from");
    v("warmup_inside", c.warmup_inside, "the curve runs beneath the warm-up (timm) instead of after it");
    v("min_lr", c.min_lr, "learning rate at the end; the floor of step");
    v("count_from_one", c.count_from_one, "the first update takes the curve's second value");
    v("power", c.power, "polynomial: its power");
    v("milestones", c.milestones, "step: updates at which the rate falls; below 1: shares of the run");
    v("every", c.every,
      "step: updates between falls, when there are no milestones; below 1: share of the run");
    v("gamma", c.gamma, "step: the rate is multiplied by this");
    v("peak_at", c.peak_at, "one_cycle: share of the run that rises");
    v("start_divisor", c.start_divisor, "one_cycle: it starts at the base rate divided by this");
    v("end_divisor", c.end_divisor, "one_cycle: it ends at its start divided by this");
  }
};

// Throws Error(kConfig) naming key, value and rule.
void validate(const ScheduleConfig& config);

// Returns the learning rate of update `step`, counted from 0, in a run of total_steps. The first update uses
// the curve's first value: warmup_lr when there is a warm-up, even if that is 0.
double lr_at(const ScheduleConfig& config, double base_lr, int64_t step, int64_t total_steps);

}  // namespace vitrail
