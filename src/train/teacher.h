// A second model that only answers: its logits become targets of the one being trained. Used by the trainer
// when distilling.
#pragma once

#include "io/model_files.h"
#include "runtime/executor.h"
#include "train/step_config.h"

namespace vitrail {

class Teacher {
 public:
  // Plans, and allocates nothing yet. Error(kConfig) when the teacher takes other images or knows other
  // classes than the student. Computes in the run's types, weights stored in them.
  Teacher(const DistillConfig& config, const ModelCard& student, int64_t batch, PrecisionOptions types,
          const Backend& backend, const DeviceInfo& device);
  // Once, before the first question.
  void start(RankContext& rank);

  // Targets [B K] for a batch of images: softened probabilities, or 1 for the first choice.
  std::span<const float> targets(std::span<const float> images);
  const MemoryPlan& memory() const { return plan_.memory; }
  size_t bytes() const { return plan_.memory.peak_bytes(); }

 private:
  DistillConfig config_;
  std::unique_ptr<OpenedModel> model_;  // until start()
  ExecutionPlan plan_;
  RankContext* rank_ = nullptr;  // from start() on
  std::unique_ptr<PersistentStore> store_;
  std::unique_ptr<Executor> executor_;
  std::vector<float> logits_, targets_;
  int64_t classes_ = 0;
};

}  // namespace vitrail
