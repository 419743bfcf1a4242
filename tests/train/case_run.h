// A golden case in execution: the planned step with weights by rule, fed with the case's batches.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "runtime/transfer.h"
#include "step_golden.h"
#include "train/train_step.h"

namespace vitrail::golden {

inline void fill_by_rule_name(const std::string& name, const Shape& shape, std::span<float> target) {
  fill_by_rule({name, shape}, target);
}

// A case as it runs.
class CaseRun {
 public:
  CaseRun(const StepCase& c, const Backend& backend, const DeviceInfo& device = cpu_device(1))
      : case_(c),
        data_(step_data(c)),
        rank_(device),
        plan_(plan_step(c.config, backend, rank_.device)),
        step_(plan_, rank_) {
    step_.start(fill_by_rule_name);
  }

  // Runs forward and backward of all micro-batches; returns the loss.
  double gradients(int64_t number) {
    double loss = 0;
    const int64_t size = case_.config.micro_batch;
    const std::vector<float> weights(static_cast<size_t>(size), 1.0f / static_cast<float>(case_.batch));
    for (int64_t first = number * case_.batch; first < (number + 1) * case_.batch; first += size) {
      const auto part = [&](const std::vector<float>& all) {
        const size_t each = all.size() / static_cast<size_t>(case_.steps * case_.batch);
        return std::span(all).subspan(static_cast<size_t>(first) * each, static_cast<size_t>(size) * each);
      };
      step_.run_micro({.images = part(data_.images),
                       .targets = part(data_.targets),
                       .weights = weights,
                       .teacher = part(data_.teacher)});
      for (double one : doubles(step_.micro().output("loss"))) loss += one;
    }
    return loss / static_cast<double>(case_.batch);
  }

  StepValues update(int64_t number) {
    const auto schedule = read_config<ScheduleConfig>(case_.json.at("schedule"));
    return step_.run_update(lr_at(schedule, case_.config.optim.lr, number, case_.json.at("total")));
  }

  // Runs steps [0, count); returns the losses.
  std::vector<double> run(int64_t count) {
    std::vector<double> losses;
    for (int64_t i = 0; i < count; ++i) {
      losses.push_back(gradients(i));
      update(i);
    }
    return losses;
  }

  StepData& data() { return data_; }
  const StepPlan& plan() const { return plan_; }
  const PersistentStore& store() const { return step_.store(); }
  WholeValues& whole() { return step_.whole(); }
  std::vector<double> value(const std::string& name) const { return doubles(step_.store().view(name)); }
  bool has(const std::string& name) const { return step_.store().layout().has(name); }

 private:
  std::vector<double> doubles(const TensorView& view) const {
    std::vector<double> values(static_cast<size_t>(view.desc().elems()));
    read_doubles(step_.rank(), view, values);
    return values;
  }

  const StepCase& case_;
  StepData data_;
  RankContext rank_;
  StepPlan plan_;
  TrainStep step_;
};

}  // namespace vitrail::golden
