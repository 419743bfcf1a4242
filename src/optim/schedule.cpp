#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace vitrail {

namespace {

constexpr double kPi = 3.14159265358979323846;

// Converts a length of the config to updates.
double updates(double length, double total) {
  return length < 1 ? std::round(length * total) : length;
}

double cosine_between(double from, double to, double share) {
  return to + 0.5 * (from - to) * (1 + std::cos(kPi * share));
}

double falls(const ScheduleConfig& c, double at, double total) {
  if (c.milestones.empty()) return std::floor(at / std::max(1.0, updates(c.every, total)));
  return static_cast<double>(std::count_if(c.milestones.begin(), c.milestones.end(),
                                           [&](double m) { return updates(m, total) <= at; }));
}

// The one-cycle schedule is two half cosines: from base/start_divisor up to base, then down to
// base/start_divisor/end_divisor at the last update.
double one_cycle(const ScheduleConfig& c, double base, double at, double total) {
  const double first = base / c.start_divisor, last = total - 1;
  const double top = std::max(0.0, c.peak_at * total - 1);
  if (at < top) return cosine_between(first, base, at / top);
  return cosine_between(base, first / c.end_divisor,
                        last > top ? std::min(1.0, (at - top) / (last - top)) : 0);
}

// The share of the warm-up's rise that is done `at` updates after its start.
double risen(const ScheduleConfig& c, double at, double warmup) {
  return c.warmup_shape == WarmupShape::kLog && warmup > 1 ? std::log(at + 1) / std::log(warmup)
                                                           : at / warmup;
}

// DeepSpeed moves its schedule after an update, so that the second update takes the curve's first value too;
// the first takes where the warm-up starts, and 0 of a cosine. A warm-up has at least two updates.
double deepspeed_lr(const ScheduleConfig& c, double base, double step, double total) {
  if (step == 0) return c.kind == ScheduleKind::kWarmupCosine ? 0 : c.warmup_lr;
  const double warmup = std::max(2.0, updates(c.warmup, total)), at = step - 1;
  if (at < warmup) return c.warmup_lr + risen(c, at, warmup) * (base - c.warmup_lr);
  const double rest = std::max(1.0, total - warmup);
  if (c.kind == ScheduleKind::kWarmupDecay)
    return c.min_lr + (base - c.min_lr) * std::clamp((total - at) / rest, 0.0, 1.0);
  if (c.kind == ScheduleKind::kWarmupCosine)
    return cosine_between(base, c.min_lr, std::min(1.0, (at - warmup + 1) / rest));
  return base;
}

}  // namespace

void validate(const ScheduleConfig& c) {
  const auto require = [](bool holds, const char* key, double value, const char* rule) {
    VT_REQUIRE(holds && std::isfinite(value), ErrorKind::kConfig, "%s is %g; expected %s", key, value, rule);
  };
  require(c.warmup >= 0, "schedule.warmup", c.warmup, "a number of updates, or a share of the run below 1");
  require(c.warmup_lr >= 0, "schedule.warmup_lr", c.warmup_lr, "a number from 0");
  require(c.length >= 0, "schedule.length", c.length, "a number of updates, or a share of the run below 1");
  require(c.min_lr >= 0, "schedule.min_lr", c.min_lr, "a number from 0");
  require(c.power > 0, "schedule.power", c.power, "a number above 0");
  require(c.every >= 0, "schedule.every", c.every, "a number from 0");
  require(c.gamma > 0 && c.gamma <= 1, "schedule.gamma", c.gamma, "a number above 0, at most 1");
  require(c.peak_at > 0 && c.peak_at < 1, "schedule.peak_at", c.peak_at, "a number between 0 and 1");
  require(c.start_divisor >= 1, "schedule.start_divisor", c.start_divisor, "a number from 1");
  require(c.end_divisor >= 1, "schedule.end_divisor", c.end_divisor, "a number from 1");
  for (double m : c.milestones) require(m > 0, "schedule.milestones", m, "numbers above 0");
  VT_REQUIRE(c.kind != ScheduleKind::kStep || !c.milestones.empty() || c.every > 0, ErrorKind::kConfig,
             "schedule.kind is step, without schedule.milestones and with schedule.every 0; expected one of "
             "the two");
  VT_REQUIRE(c.kind != ScheduleKind::kOneCycle || c.warmup == 0, ErrorKind::kConfig,
             "schedule.warmup is %g and schedule.kind is one_cycle; expected 0: its own rise is peak_at",
             c.warmup);
}

double lr_at(const ScheduleConfig& c, double base_lr, int64_t step, int64_t total_steps) {
  const auto run = static_cast<double>(total_steps);
  const double total = c.length > 0 ? updates(c.length, run) : run;
  if (c.kind >= ScheduleKind::kWarmup) return deepspeed_lr(c, base_lr, static_cast<double>(step), total);
  const double at = static_cast<double>(step) + (c.count_from_one ? 1 : 0);
  const double warmup = updates(c.warmup, total);
  if (at < warmup) return c.warmup_lr + risen(c, at, warmup) * (base_lr - c.warmup_lr);
  const double from = c.warmup_inside ? 0 : warmup;
  const double share = total > from ? std::clamp((at - from) / (total - from), 0.0, 1.0) : 1.0;
  switch (c.kind) {
    case ScheduleKind::kConstant:
      return base_lr;
    case ScheduleKind::kCosine:
      return cosine_between(base_lr, c.min_lr, share);
    case ScheduleKind::kLinear:
      return c.min_lr + (base_lr - c.min_lr) * (1 - share);
    case ScheduleKind::kPolynomial:
      return c.min_lr + (base_lr - c.min_lr) * std::pow(1 - share, c.power);
    case ScheduleKind::kStep:
      return std::max(c.min_lr, base_lr * std::pow(c.gamma, falls(c, at, total)));
    case ScheduleKind::kOneCycle:
      return one_cycle(c, base_lr, at, total);
    case ScheduleKind::kWarmup:
    case ScheduleKind::kWarmupDecay:
    case ScheduleKind::kWarmupCosine:
      break;  // computed above
  }
  throw Error(ErrorKind::kInternal, "unknown schedule");
}

}  // namespace vitrail
