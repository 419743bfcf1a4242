// A step on a device of a test's own, without a loader.
#pragma once

#include <functional>

#include "train/helpers/tiny_run.h"
#include "train/run_setup.h"
#include "train/train_state.h"

namespace vitrail::testing {

// The error that a piece of work ends with.
inline Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kInternal, "nothing was refused");
}

// A step on a device of its own, or on the processor, fed with synthetic images.
class Stepped {
 public:
  Stepped(const StepConfig& config, const PreparedModel& model, std::unique_ptr<Device> device)
      : apart_(!device->shares_host_memory()),
        rank_(info(), std::move(device)),
        plan_(plan_step(config, cpu_backend(), rank_.device)),
        step_(plan_, rank_) {
    step_.start(model.filler());
  }

  std::vector<float> update(int64_t number) {
    const StepConfig& c = plan_.config;
    const auto images = made(static_cast<uint64_t>(number), c.micro_batch * 3 * 64);
    const auto targets = made(99, c.micro_batch * c.model.classes);
    const std::vector<float> weights(static_cast<size_t>(c.micro_batch), 0.1f);
    step_.run_micro(
        {.images = images, .targets = targets, .weights = weights, .teacher = {}, .step = number});
    step_.run_update(0.01);
    std::vector<float> answers;
    for (const bool average : {true, false}) {
      const auto logits = step_.evaluate(made(7, c.eval_batch * 3 * 64), c.eval_batch, average);
      answers.insert(answers.end(), logits.begin(), logits.end());
    }
    return answers;
  }

  Tensors state() {
    Tensors tensors;
    for (const TensorToWrite& one : state_tensors(step_.whole())) {
      tensors[one.info.name].resize(one.info.bytes);
      one.fill(tensors[one.info.name]);
    }
    return tensors;
  }
  const StepPlan& plan() const { return plan_; }
  const TrainStep& step() const { return step_; }
  Device& device() { return *rank_.hardware; }

 private:
  DeviceInfo info() const {
    DeviceInfo info = cpu_device(2);
    info.shares_host_memory = !apart_;
    return info;
  }
  static std::vector<float> made(uint64_t seed, int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = counter_uniform(seed, i);
    return values;
  }

  bool apart_;
  RankContext rank_;
  StepPlan plan_;
  TrainStep step_;
};

}  // namespace vitrail::testing
