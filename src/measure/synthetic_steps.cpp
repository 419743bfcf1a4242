#include "measure/synthetic_steps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "measure/timing.h"
#include "plan/devices.h"
#include "train/micro_feed.h"

namespace vitrail {

namespace {
// Synthetic steps have no warm-up of the learning rate, so a tenth of the peak is used.
constexpr double kShareOfRate = 0.1;
}  // namespace

SyntheticSteps::SyntheticSteps(const RunPlan& plan, RankContext& rank)
    : config_(plan.setup().config), images_here_(plan.setup().train_share.rows), step_(plan.step(), rank) {
  const VitConfig& model = plan.setup().model->card.config;
  const int64_t images = images_here_, first = plan.setup().train_share.first;
  images_ = rule_images(model, first + images);  // this rank's are the last of them
  images_.erase(images_.begin(),
                images_.begin() + static_cast<ptrdiff_t>(images_.size()) / (first + images) * first);
  make_pixels(plan.setup().step, first);
  targets_.resize(static_cast<size_t>(images * model.classes));
  for (int64_t i = 0; i < images; ++i)
    targets_[static_cast<size_t>(i * model.classes + (first + i) % model.classes)] = 1;
  weights_.assign(static_cast<size_t>(images), 1 / static_cast<float>(config_.train.batch));
  step_.start(plan.setup().model->filler());
  bring_images(plan.setup(), step_);
}

void SyntheticSteps::run() {
  if (step_.plan().pipelined)
    step_.run_pipeline([this](int64_t micro, bool) { return batch_at(micro); });
  else
    for (int64_t micro = 0; micro < config_.train.accumulation; ++micro) run_micro(micro);
  step_.run_update(config_.optim.lr * kShareOfRate);
  ++steps_;
}

std::vector<Executor*> SyntheticSteps::programs() {
  std::vector<Executor*> programs = {&step_.micro()};
  if (step_.last_micro()) programs.push_back(step_.last_micro());
  programs.push_back(&step_.update());
  return programs;
}

void SyntheticSteps::reset_times() {
  for (Executor* program : programs()) program->reset_times();
}

int64_t SyntheticSteps::time_nodes() {
  constexpr int64_t kRuns = 5;
  for (Executor* program : programs()) program->time_nodes(true);
  reset_times();
  for (int64_t i = 0; i < kRuns; ++i) run();
  return kRuns;
}

double SyntheticSteps::loss_share() {
  if (step_.plan().pipelined) return pipeline_loss();
  run_micro(0);
  double sum = 0;
  for (const float loss : step_.losses()) sum += static_cast<double>(loss);
  const int64_t images = config_.train.batch / config_.train.accumulation;
  return sum / static_cast<double>(images);
}

// A pipeline has the sum of an update's losses, on its last stage.
double SyntheticSteps::pipeline_loss() {
  step_.take_loss();
  step_.run_pipeline([this](int64_t micro, bool) { return batch_at(micro); });
  return step_.take_loss();
}

// Makes the same images in 8 bits, for steps that take pixels.
void SyntheticSteps::make_pixels(const StepConfig& step, int64_t first) {
  if (step.images == ImageForm::kFloats) return;
  for (int64_t i = 0; i < images_here_; ++i) {
    const bool stored = step.images == ImageForm::kStored;
    recipes_.push_back({.source = static_cast<int32_t>(stored ? (first + i) % step.stored_images : i)});
  }
  for (const float value : images_)
    pixels_.push_back(static_cast<uint8_t>(std::clamp(128 + 60 * value, 0.0f, 255.0f)));
}

// Where a teacher is configured, its targets are the labels.
MicroBatch SyntheticSteps::batch_at(int64_t micro) const {
  return {.images = images_,
          .targets = targets_,
          .weights = weights_,
          .teacher = targets_,
          .seed = config_.train.seed,
          .step = steps_,
          .position = micro * (config_.train.batch / config_.train.accumulation),
          .pixels = pixels_,
          .recipes = recipes_,
          .last = micro + 1 == config_.train.accumulation};
}

void SyntheticSteps::run_micro(int64_t micro) {
  const MicroBatch batch = batch_at(micro);
  // On a device that keeps its inputs the images are copied once.
  if (steps_ > 0 && step_.keeps_inputs())
    step_.run_micro_again(batch);
  else
    step_.run_micro(batch);
}

BenchResult described(const RunPlan& plan) {
  const VitConfig& model = plan.setup().model->card.config;
  const int64_t batch = plan.setup().config.train.batch;
  return {.model = model.arch.empty() ? strf("ViT %lldx%lld", static_cast<long long>(model.width),
                                             static_cast<long long>(model.depth))
                                      : model.arch,
          .device = device_text(plan.step().micro),
          .dtype = enum_name(plan.setup().config.train.dtype),
          .training = true,
          .batch = batch,
          .peak_bytes = plan.step().peak_bytes(),
          // The backward pass counts as twice the forward pass; recomputation counts as time, not as useful
          // work.
          .flops = 3 * 2 * static_cast<double>(count_run_macs(model) * batch),
          .model_flops = 3 * 2 * static_cast<double>(count_macs(model) * batch)};
}

std::string training_text(const RunPlan& plan) {
  const RunConfig& train = plan.setup().config.train;
  return strf("%s, %s, recompute %s, micro-batches of %lld", plan.setup().config.optim.name.c_str(),
              enum_name(train.dtype), enum_name(train.recompute), static_cast<long long>(train.micro_batch));
}

nlohmann::ordered_json training_facts(const RunPlan& plan) {
  const RunConfig& train = plan.setup().config.train;
  return {{"micro_batch", train.micro_batch},
          {"optimizer", plan.setup().config.optim.name},
          {"recompute", enum_name(train.recompute)}};
}

}  // namespace vitrail
