// The teacher of a distillation: a second, frozen model whose logits become targets of the one being trained.
// Knows nothing of the student's step.
#pragma once

#include "io/model_files.h"
#include "runtime/executor.h"
#include "train/step_config.h"

namespace vitrail {

// Opens the teacher for images of the student's size.
std::unique_ptr<OpenedModel> open_teacher(const DistillConfig& config, const VitConfig& student);

constexpr const char* kTeacherWeights = "weights";
// Returns the facts of a checkpoint about a teacher: its card_facts() and, as kTeacherWeights, the identity
// of its weights, without their place; empty where nothing is distilled.
Json teacher_facts(const DistillConfig& config, const VitConfig& student);

class Teacher {
 public:
  // Plans, and allocates nothing yet. Throws Error(kConfig) when the teacher's images or classes differ from
  // the student's. It computes in the run's types and stores its weights in them.
  Teacher(const DistillConfig& config, const ModelCard& student, int64_t batch, PrecisionOptions types,
          const Backend& backend, const DeviceInfo& device);
  // Loads the weights; called once, before targets().
  void start(RankContext& rank);

  // Returns targets [B K] for a batch of images: softened probabilities, or 1 for the top-1 class.
  std::span<const float> targets(std::span<const float> images);
  const ExecutionPlan& plan() const { return plan_; }
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
