// Learning rates as pure functions of the step. Knows no optimizer and keeps no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace vitrail {

// The last three are DeepSpeed's WarmupLR, WarmupDecayLR and WarmupCosineLR, update by update.
enum class ScheduleKind {
  kConstant,
  kCosine,
  kLinear,
  kStep,
  kPolynomial,
  kOneCycle,
  kWarmup,
  kWarmupDecay,
  kWarmupCosine
};
template <>
struct EnumNames<ScheduleKind> {
  static constexpr const char* names[] = {"constant",  "cosine", "linear",       "step",         "polynomial",
                                          "one_cycle", "warmup", "warmup_decay", "warmup_cosine"};
};

enum class WarmupShape { kLinear, kLog };
template <>
struct EnumNames<WarmupShape> {
  static constexpr const char* names[] = {"linear", "log"};
};

// The schedule's settings; lengths are in updates, and a length below 1 is a share of the run.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kCosine;
  double warmup = 0;
  double warmup_lr = 0;
  WarmupShape warmup_shape = WarmupShape::kLinear;
  bool warmup_inside = false;
  double length = 0;
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
    v("kind", c.kind,
      "constant, cosine, linear, step, polynomial or one_cycle; warmup, warmup_decay and warmup_cosine are "
      "DeepSpeed's WarmupLR, WarmupDecayLR and WarmupCosineLR");
    v("warmup", c.warmup, "updates of warm-up; below 1: share of the run");
    v("warmup_lr", c.warmup_lr, "learning rate the warm-up starts from");
    v("warmup_shape", c.warmup_shape, "linear or log: how the rate rises");
    v("warmup_inside", c.warmup_inside, "the curve runs beneath the warm-up (timm) instead of after it");
    v("length", c.length, "updates after which the curve is at its end; 0: the run's; below 1: share of it");
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
