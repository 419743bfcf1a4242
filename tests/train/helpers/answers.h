// The outputs of a saved model, computed independently of any trainer.
#pragma once

#include "base/rng.h"
#include "io/model_files.h"
#include "passes/pipeline.h"
#include "runtime/executor.h"
#include "train/evaluate.h"
#include "train/helpers/tiny_run.h"
#include "train/run_setup.h"
#include "train/train_step.h"

namespace vitrail::testing {

inline EvalResult evaluate_folder(const std::string& folder, const Dataset& dataset, int64_t batch) {
  const std::unique_ptr<OpenedModel> model = open_model(folder);
  const VitConfig& config = model->card().config;
  RankContext rank(cpu_device(1));
  const ExecutionPlan plan =
      plan_execution(inference_program(record_vit(config, {.batch = batch}), {}), cpu_backend(), rank.device);
  PersistentStore store(plan, rank);
  store.load(plan, [&](const std::string& name, const Shape& shape, std::span<float> target) {
    model->read_param({name, shape}, target);
  });
  Executor executor(plan, store, rank);
  LoaderSettings settings;
  settings.preprocess = model->card().preprocess;
  settings.micro_batch = batch;
  settings.channels = config.channels;
  settings.classes = config.classes;
  const auto loader = make_eval_loader(dataset, settings);
  const Forward forward = [&](std::span<const float> images, int64_t) {
    std::copy(images.begin(), images.end(), executor.input("images").as<float>());
    executor.run();
    return std::span<const float>(executor.output("logits").as<float>(),
                                  static_cast<size_t>(batch * config.classes));
  };
  return evaluate(dataset, *loader, forward, {.progress = {}, .stop = {}});
}

// Returns all of a model's parameters by canonical name.
inline std::map<std::string, std::vector<float>> params_of(const std::string& folder,
                                                           const OpenOptions& options = {}) {
  const std::unique_ptr<OpenedModel> model = open_model(folder, options);
  std::map<std::string, std::vector<float>> params;
  for (const ParamSpec& spec : vit_params(model->card().config)) {
    std::vector<float>& values = params[spec.name];
    values.resize(static_cast<size_t>(spec.shape.elems()));
    model->read_param(spec, values);
  }
  return params;
}

// Until the first update the average is the weights themselves, so both models give the same outputs to the
// bit, whatever the run's precision: returns the outputs of the two.
inline std::array<std::vector<float>, 2> first_answers(TrainConfig config, const Backend& backend,
                                                       const DeviceInfo& device) {
  config.optim.ema_decay = 0.9;
  const RunSetup setup = set_up(config);
  const StepPlan plan = plan_step(setup.step, backend, device);
  RankContext rank(device);
  TrainStep step(plan, rank);
  step.start(setup.model->filler());
  const VitConfig& model = setup.step.model;
  std::vector<float> images(
      static_cast<size_t>(setup.step.eval_batch * model.channels * model.image_height * model.image_width));
  for (size_t i = 0; i < images.size(); ++i) images[i] = counter_uniform(name_key("images"), i);
  std::array<std::vector<float>, 2> answers;
  for (const bool average : {false, true}) {
    const auto logits = step.evaluate(images, setup.step.eval_batch, average);
    answers[average].assign(logits.begin(), logits.end());
  }
  return answers;
}

}  // namespace vitrail::testing
