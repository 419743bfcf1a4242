#include "optim/optim_config.h"

#include <cmath>

#include "optim/recorders.h"

namespace vitrail {

namespace {

void require(bool holds, const char* key, double value, const char* rule) {
  VT_REQUIRE(holds, ErrorKind::kConfig, "%s is %g; expected %s", key, value, rule);
}

}  // namespace

void validate(const OptimConfig& c) {
  const Optimizer& row = find_optimizer(c.name);
  const auto fraction = [](const char* key, double value) {
    require(value >= 0 && value < 1, key, value, "a number from 0 to below 1");
  };
  require(std::isfinite(c.lr) && c.lr > 0, "optim.lr", c.lr, "a number above 0");
  fraction("optim.momentum", c.momentum);
  if (c.beta1 >= 0) fraction("optim.beta1", c.beta1);
  if (c.beta2 >= 0) fraction("optim.beta2", c.beta2);
  fraction("optim.ema_decay", c.ema_decay);
  require(std::isfinite(c.eps), "optim.eps", c.eps, "a number");
  require(std::isfinite(c.weight_decay) && c.weight_decay >= 0, "optim.weight_decay", c.weight_decay,
          "a number from 0");
  require(std::isfinite(c.trust_min) && c.trust_min >= 0, "optim.trust_min", c.trust_min, "a number from 0");
  require(std::isfinite(c.trust_max) && (c.trust_max == 0 || c.trust_max >= c.trust_min), "optim.trust_max",
          c.trust_max, "0, or a number not below optim.trust_min");
  require(std::isfinite(c.clip_norm) && c.clip_norm >= 0, "optim.clip_norm", c.clip_norm, "a number from 0");
  VT_REQUIRE(!c.nesterov || c.momentum > 0, ErrorKind::kConfig,
             "optim.nesterov is true but optim.momentum is 0; expected a momentum above 0");
  VT_REQUIRE(c.decay == DecayStyle::kUsual || c.decay == row.decay || !row.own_decay, ErrorKind::kConfig,
             "optim.decay is %s; expected usual: %s has its own", enum_name(c.decay), row.name);
}

OptimConfig resolved(const OptimConfig& config) {
  validate(config);
  const Optimizer& row = find_optimizer(config.name);
  OptimConfig c = config;
  if (c.beta1 < 0) c.beta1 = row.beta1;
  if (c.beta2 < 0) c.beta2 = row.beta2;
  if (c.eps < 0) c.eps = row.eps;
  if (c.decay == DecayStyle::kUsual) c.decay = row.decay;
  return c;
}

void validate(const LossScaleConfig& c) {
  require(c.min > 0 && std::isfinite(c.min), "loss_scale.min", c.min, "a number above 0");
  require(c.max >= c.min && std::isfinite(c.max), "loss_scale.max", c.max, "a number not below min");
  require(c.initial >= c.min && c.initial <= c.max, "loss_scale.initial", c.initial,
          "a number from min to max");
  require(c.window >= 1, "loss_scale.window", static_cast<double>(c.window), "at least 1");
  require(c.hysteresis >= 1, "loss_scale.hysteresis", static_cast<double>(c.hysteresis), "at least 1");
}

LossScaleRule loss_scale_rule(const LossScaleConfig& c, bool fp16) {
  validate(c);
  LossScaleMode mode = c.mode;
  if (mode == LossScaleMode::kAuto) mode = fp16 ? LossScaleMode::kDynamic : LossScaleMode::kOff;
  if (mode == LossScaleMode::kOff) return {};
  return {mode == LossScaleMode::kDynamic, c.initial, c.min, c.max, c.window, c.hysteresis, c.consecutive};
}

}  // namespace vitrail
