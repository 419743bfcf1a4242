#include "setting_rows.h"

namespace vitrail::testing {
namespace {

void nothing(TrainConfig&) {}
void by_sgd(TrainConfig& c) {
  c.optim.name = "sgd", c.optim.momentum = 0.5;
}
void by_lamb(TrainConfig& c) {
  c.optim.name = "lamb", c.optim.weight_decay = 0.1;
}
void decaying(TrainConfig& c) {
  c.optim.weight_decay = 0.5;
}
void averaging(TrainConfig& c) {
  c.optim.ema_decay = 0.9;
}
void in_bf16(TrainConfig& c) {
  c.train.dtype = ComputeType::kBF16;
}
// Enough activations that recomputing saves some, more than an evaluation needs.
void deep(TrainConfig& c) {
  c.model.fields.depth = 6;
  c.train.batch = 32;
  c.train.eval_batch = 1;
}
void with_lora(TrainConfig& c) {
  c.lora = {.rank = 2, .alpha = 4};
}
void adapting_both(TrainConfig& c) {
  c.lora = {.rank = 2, .alpha = 4, .attention = true, .mlp = true};
}
SettingChange curve(ScheduleKind kind) {
  return [kind](TrainConfig& c) {
    c.schedule.kind = kind;
    if (kind == ScheduleKind::kStep) c.schedule.every = 2, c.schedule.gamma = 0.5;
    if (kind == ScheduleKind::kCosine) c.schedule.warmup = 2;
  };
}
// Scales that overflow at first, so that the loss-scale rule acts.
void scaled(TrainConfig& c) {
  c.train.dtype = ComputeType::kF16;
  c.loss_scale = {.mode = LossScaleMode::kDynamic, .initial = 1024, .window = 2, .min = 512, .max = 2048};
}
void overflowing(TrainConfig& c) {
  scaled(c);
  c.loss_scale.initial = c.loss_scale.max = 1e9;
}
// Steps whose loss is not finite, at a learning rate that diverges.
void exploding(TrainConfig& c) {
  c.train.steps = 12;
  c.optim.lr = 1e30;
  c.schedule.kind = ScheduleKind::kConstant;
  c.train.skip_limit = 3;
  c.train.save_every = 1;
}

void add_data_rows(SettingRows& rows, const SettingsFolder& work) {
  const SettingChange folder = work.in_folder();
  rows["data.train"] = {Shows::kWeights, nothing, folder};
  rows["data.val"] = {Shows::kEvals, nothing, [](auto& c) { c.data.val = "synthetic:3x8x8x4x60"; }};
  rows["data.val_fraction"] = {Shows::kEvals, folder, [](auto& c) { c.data.val_fraction = 0.4; }};
  rows["data.fraction"] = {Shows::kWeights, folder, [](auto& c) { c.data.fraction = 0.5; }};
  rows["data.classes"] = {Shows::kWeights, folder, [](auto& c) { c.data.classes = {"class0", "class2"}; }};
  rows["data.class_names"] = {Shows::kModel, folder, [](auto& c) { c.data.class_names = {"a", "b", "c"}; }};
}

void add_train_rows(SettingRows& rows) {
  rows["train.epochs"] = {Shows::kSteps, [](auto& c) { c.train.steps = 0, c.train.epochs = 1; },
                          [](auto& c) { c.train.epochs = 2; }};
  rows["train.steps"] = {Shows::kSteps, nothing, [](auto& c) { c.train.steps = 7; }};
  rows["train.batch"] = {Shows::kWeights, nothing, [](auto& c) { c.train.batch = 16; }};
  rows["train.micro_batch"] = {Shows::kMemory, nothing, [](auto& c) { c.train.micro_batch = 4; }};
  rows["train.accumulation"] = {Shows::kMemory, nothing, [](auto& c) { c.train.accumulation = 4; }};
  rows["train.seed"] = {Shows::kWeights, nothing, [](auto& c) { c.train.seed = 5; }};
  rows["train.dtype"] = {Shows::kWeights, nothing, in_bf16};
  rows["train.low_residual"] = {Shows::kWeights, in_bf16, [](auto& c) { c.train.low_residual = true; }};
  rows["train.recompute"] = {Shows::kMemory, deep, [](auto& c) { c.train.recompute = Recompute::kBlock; }};
  rows["train.recompute_every"] = {Shows::kMemory,
                                   [](auto& c) {
                                     deep(c);
                                     c.train.recompute = Recompute::kBlock;
                                   },
                                   [](auto& c) { c.train.recompute_every = 3; }};
  rows["train.loss"] = {Shows::kWeights, nothing, [](auto& c) { c.train.loss = TrainLoss::kBceMean; }};
  rows["train.smoothing"] = {Shows::kWeights, nothing, [](auto& c) { c.train.smoothing = 0.1; }};
  rows["train.dropout"] = {Shows::kWeights, nothing, [](auto& c) { c.train.dropout = 0.1; }};
  rows["train.drop_path"] = {Shows::kWeights, nothing, [](auto& c) { c.train.drop_path = 0.3; }};
  rows["train.eval_every"] = {Shows::kEvals, nothing, [](auto& c) { c.train.eval_every = 2; }};
  rows["train.eval_batch"] = {Shows::kMemory, nothing, [](auto& c) { c.train.eval_batch = 64; }};
  rows["train.log_every"] = {Shows::kLog, nothing, [](auto& c) { c.train.log_every = 3; }};
  rows["train.save_every"] = {Shows::kCheckpoints, nothing, [](auto& c) { c.train.save_every = 2; }};
  rows["train.save_minutes"] = {Shows::kCheckpoints, nothing, [](auto& c) { c.train.save_minutes = 1e-9; }};
  rows["train.max_minutes"] = {Shows::kEnd, nothing, [](auto& c) { c.train.max_minutes = 1e-9; }};
  rows["train.patience"] = {Shows::kEnd, [](auto& c) { c.train.eval_every = 1, c.optim.lr = 1e-12; },
                            [](auto& c) { c.train.patience = 2; }};
  rows["train.skip_limit"] = {Shows::kEnd, exploding, [](auto& c) { c.train.skip_limit = 50; }};
  rows["train.rollbacks"] = {Shows::kSteps, exploding, [](auto& c) { c.train.rollbacks = 0; }};
  rows["train.save_adapters"] = {Shows::kFiles, with_lora, [](auto& c) { c.train.save_adapters = true; }};
  rows["train.breakdown"] = {Shows::kLog, nothing, [](auto& c) { c.train.breakdown = true; }};
  rows["train.tensorboard"] = {Shows::kFiles, nothing, [](auto& c) { c.train.tensorboard = true; }};
}

void add_optim_rows(SettingRows& rows) {
  rows["optim.name"] = {Shows::kWeights, nothing, [](auto& c) { c.optim.name = "lion"; }};
  rows["optim.lr"] = {Shows::kWeights, nothing, [](auto& c) { c.optim.lr = 0.001; }};
  rows["optim.momentum"] = {Shows::kWeights, by_sgd, [](auto& c) { c.optim.momentum = 0.9; }};
  rows["optim.nesterov"] = {Shows::kWeights, by_sgd, [](auto& c) { c.optim.nesterov = true; }};
  rows["optim.beta1"] = {Shows::kWeights, nothing, [](auto& c) { c.optim.beta1 = 0.5; }};
  rows["optim.beta2"] = {Shows::kWeights, nothing, [](auto& c) { c.optim.beta2 = 0.9; }};
  rows["optim.eps"] = {Shows::kWeights, nothing, [](auto& c) { c.optim.eps = 1e-3; }};
  rows["optim.weight_decay"] = {Shows::kWeights, nothing, decaying};
  rows["optim.decay"] = {Shows::kWeights, decaying, [](auto& c) { c.optim.decay = DecayStyle::kCoupled; }};
  rows["optim.clip_norm"] = {Shows::kWeights, by_sgd, [](auto& c) { c.optim.clip_norm = 0.01; }};
  rows["optim.moment_dtype"] = {Shows::kWeights, nothing,
                                [](auto& c) { c.optim.moment_dtype = MomentDType::kBF16; }};
  rows["optim.adapt_all"] = {Shows::kWeights, by_lamb, [](auto& c) { c.optim.adapt_all = false; }};
  rows["optim.bias_correction"] = {Shows::kWeights, nothing,
                                   [](auto& c) { c.optim.bias_correction = false; }};
  rows["optim.trust_min"] = {Shows::kWeights, by_lamb, [](auto& c) { c.optim.trust_min = 50; }};
  rows["optim.trust_max"] = {Shows::kWeights, by_lamb, [](auto& c) { c.optim.trust_max = 0.01; }};
  rows["optim.ema_decay"] = {Shows::kModel, nothing, averaging};
  rows["optim.ema_warmup"] = {Shows::kModel, averaging, [](auto& c) { c.optim.ema_warmup = true; }};
  rows["params.freeze"] = {Shows::kWeights, nothing, [](auto& c) { c.params.freeze = {"blocks.0.*"}; }};
  rows["params.linear_probe"] = {Shows::kWeights, nothing, [](auto& c) { c.params.linear_probe = true; }};
  rows["params.layer_decay"] = {Shows::kWeights, nothing, [](auto& c) { c.params.layer_decay = 0.5; }};
  rows["params.decay_vectors"] = {Shows::kWeights, decaying, [](auto& c) { c.params.decay_vectors = true; }};
  rows["params.no_decay"] = {Shows::kWeights, decaying, [](auto& c) { c.params.no_decay = {"head.*"}; }};
}

void add_schedule_rows(SettingRows& rows) {
  const SettingChange cosine = curve(ScheduleKind::kCosine), step = curve(ScheduleKind::kStep),
                      cycle = curve(ScheduleKind::kOneCycle), power = curve(ScheduleKind::kPolynomial);
  rows["schedule.kind"] = {Shows::kRates, nothing, [](auto& c) { c.schedule.kind = ScheduleKind::kLinear; }};
  rows["schedule.warmup"] = {Shows::kRates, nothing, cosine};
  rows["schedule.warmup_lr"] = {Shows::kRates, cosine, [](auto& c) { c.schedule.warmup_lr = 1e-4; }};
  rows["schedule.warmup_inside"] = {Shows::kRates, cosine, [](auto& c) { c.schedule.warmup_inside = true; }};
  rows["schedule.warmup_shape"] = {Shows::kRates, cosine,
                                   [](auto& c) { c.schedule.warmup_shape = WarmupShape::kLog; }};
  rows["schedule.length"] = {Shows::kRates, cosine, [](auto& c) { c.schedule.length = 4; }};
  rows["schedule.min_lr"] = {Shows::kRates, nothing, [](auto& c) { c.schedule.min_lr = 1e-3; }};
  rows["schedule.count_from_one"] = {Shows::kRates, nothing,
                                     [](auto& c) { c.schedule.count_from_one = true; }};
  rows["schedule.power"] = {Shows::kRates, power, [](auto& c) { c.schedule.power = 2; }};
  rows["schedule.milestones"] = {Shows::kRates, step, [](auto& c) { c.schedule.milestones = {3}; }};
  rows["schedule.every"] = {Shows::kRates, step, [](auto& c) { c.schedule.every = 3; }};
  rows["schedule.gamma"] = {Shows::kRates, step, [](auto& c) { c.schedule.gamma = 0.25; }};
  rows["schedule.peak_at"] = {Shows::kRates, cycle, [](auto& c) { c.schedule.peak_at = 0.6; }};
  rows["schedule.start_divisor"] = {Shows::kRates, cycle, [](auto& c) { c.schedule.start_divisor = 5; }};
  rows["schedule.end_divisor"] = {Shows::kRates, cycle, [](auto& c) { c.schedule.end_divisor = 2; }};
  rows["loss_scale.mode"] = {Shows::kScale, scaled, [](auto& c) { c.loss_scale.mode = LossScaleMode::kOff; }};
  rows["loss_scale.initial"] = {Shows::kScale, scaled, [](auto& c) { c.loss_scale.initial = 512; }};
  rows["loss_scale.window"] = {Shows::kScale, scaled, [](auto& c) { c.loss_scale.window = 3; }};
  rows["loss_scale.min"] = {Shows::kScale, overflowing, [](auto& c) { c.loss_scale.min = 5e8; }};
  rows["loss_scale.hysteresis"] = {Shows::kScale, overflowing, [](auto& c) { c.loss_scale.hysteresis = 2; }};
  rows["loss_scale.max"] = {Shows::kScale, scaled, [](auto& c) { c.loss_scale.max = 1024; }};
}

void add_other_rows(SettingRows& rows, const SettingsFolder& work) {
  const SettingChange soft = work.taught(DistillKind::kSoft);
  rows["distill.kind"] = {Shows::kWeights, soft, [](auto& c) { c.distill.kind = DistillKind::kHard; }};
  rows["distill.teacher"] = {Shows::kWeights, soft,
                             [&work](auto& c) { c.distill.teacher = work.teacher(2) + "/best"; }};
  rows["distill.alpha"] = {Shows::kWeights, soft, [](auto& c) { c.distill.alpha = 0.9; }};
  rows["distill.temperature"] = {Shows::kWeights, soft, [](auto& c) { c.distill.temperature = 5; }};
  rows["lora.rank"] = {Shows::kModel, nothing, with_lora};
  rows["lora.alpha"] = {Shows::kModel, with_lora, [](auto& c) { c.lora.alpha = 16; }};
  rows["lora.attention"] = {Shows::kModel, adapting_both, [](auto& c) { c.lora.attention = false; }};
  rows["lora.mlp"] = {Shows::kModel, adapting_both, [](auto& c) { c.lora.mlp = false; }};
  rows["checkpoint.keep_last"] = {Shows::kCheckpoints, [](auto& c) { c.train.save_every = 1; },
                                  [](auto& c) { c.checkpoint.keep_last = 2; }};
  rows["checkpoint.keep_every"] = {Shows::kCheckpoints, [](auto& c) { c.train.save_every = 1; },
                                   [](auto& c) { c.checkpoint.keep_every = 2; }};
}

// What the loader's own tests hold row by row (AugmentSettings, LoaderSettings); that a run passes them on,
// these.
void add_loading_rows(SettingRows& rows) {
  rows["augment.hflip"] = {Shows::kWeights, nothing, [](auto& c) { c.augment.hflip = 0.5; }};
  rows["loader.balanced"] = {Shows::kWeights, nothing, [](auto& c) { c.loader.balanced = true; }};
}

}  // namespace

SettingRows setting_rows(const SettingsFolder& work) {
  SettingRows rows;
  add_data_rows(rows, work);
  add_train_rows(rows);
  add_optim_rows(rows);
  add_schedule_rows(rows);
  add_other_rows(rows, work);
  add_loading_rows(rows);
  return rows;
}

}  // namespace vitrail::testing
