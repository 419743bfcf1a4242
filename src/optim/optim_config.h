// The settings of a run's optimizer, as data. A negative beta or epsilon means the optimizer's default, which
// resolved() fills in. Knows nothing of parameters or of the model.
#pragma once

#include "ops/update/control.h"

namespace vitrail {

// The stored type of the first moment: the parameter's own type or bf16, half the bytes.
enum class MomentDType { kMaster, kBF16 };
template <>
struct EnumNames<MomentDType> {
  static constexpr const char* names[] = {"master", "bf16"};
};

// Return the names that OptimConfig::name may have, as a list and as "sgd, adam or lion".
std::vector<std::string> optimizer_names();
const char* optimizer_names_text();

struct OptimConfig {
  std::string name = "adamw";
  double lr = 1e-3;
  double momentum = 0.9;
  bool nesterov = false;
  double beta1 = -1, beta2 = -1, eps = -1;
  double weight_decay = 0;
  DecayStyle decay = DecayStyle::kUsual;
  double clip_norm = 0;
  MomentDType moment_dtype = MomentDType::kMaster;
  bool bias_correction = true;
  bool adapt_all = true;
  double trust_min = 0, trust_max = 0;
  double ema_decay = 0;
  bool ema_warmup = false;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("name", c.name, optimizer_names_text());
    v("lr", c.lr, "base learning rate, before the schedule");
    v("momentum", c.momentum, "sgd: share of the last direction that is kept; 0: none");
    v("nesterov", c.nesterov, "sgd: Nesterov's momentum");
    v("beta1", c.beta1, "decay of the first moment; negative: the optimizer's usual one");
    v("beta2", c.beta2, "decay of the second moment (lion: of its momentum); negative: the usual one");
    v("eps", c.eps, "adam, adamw, lamb: added to the root of the second moment; negative: the usual one");
    v("weight_decay", c.weight_decay, "weight decay of the parameters that have one");
    v("decay", c.decay,
      "usual, coupled (to the gradient), decoupled (times lr), schedule (times lr/base lr)");
    v("clip_norm", c.clip_norm, "largest norm of all gradients together; 0: no clipping");
    v("moment_dtype", c.moment_dtype, "master or bf16: how the first moment is stored");
    v("bias_correction", c.bias_correction, "adam, adamw, lamb: make up for moments that start at 0");
    v("adapt_all", c.adapt_all, "lamb: adapt the step also of parameters without weight decay");
    v("trust_min", c.trust_min, "lamb: least factor by which a step is adapted");
    v("trust_max", c.trust_max, "lamb: largest factor by which a step is adapted; 0: no limit");
    v("ema_decay", c.ema_decay, "share of the moving average that is kept each update; 0: no average");
    v("ema_warmup", c.ema_warmup, "the average follows faster at first: at most (1+t)/(10+t) is kept");
  }
};

// Throws Error(kConfig) naming key, value and rule.
void validate(const OptimConfig& config);

// Returns the config with every default written out; also validates.
OptimConfig resolved(const OptimConfig& config);

enum class LossScaleMode { kAuto, kOff, kFixed, kDynamic };
template <>
struct EnumNames<LossScaleMode> {
  static constexpr const char* names[] = {"auto", "off", "fixed", "dynamic"};
};

struct LossScaleConfig {
  LossScaleMode mode = LossScaleMode::kAuto;
  double initial = 65536;
  int64_t window = 2000;
  int64_t hysteresis = 1;
  bool consecutive = false;
  double min = 1, max = 16777216;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("mode", c.mode, "auto (dynamic in fp16, else off), off, fixed or dynamic");
    v("initial", c.initial, "the loss scale of the first step");
    v("window", c.window, "steps without overflow after which it doubles");
    v("hysteresis", c.hysteresis,
      "which overflow since it last doubled halves it: the first (1) or a later one");
    v("consecutive", c.consecutive, "hysteresis: count overflows in a row instead");
    v("min", c.min, "it never falls below");
    v("max", c.max, "it never rises above");
  }
};

void validate(const LossScaleConfig& config);
LossScaleRule loss_scale_rule(const LossScaleConfig& config, bool fp16);

}  // namespace vitrail
