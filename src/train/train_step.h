// A planned step made real: allocates what the plan says, holds weights and optimizer state, runs
// micro-batches, updates and evaluation forwards. Holds no policy: the trainer decides when.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "runtime/executor.h"
#include "runtime/prefetch.h"
#include "train/step_plan.h"

namespace vitrail {

// One micro-batch as the step takes it; row-major, `teacher` only when distilling. Images, or pixels and
// recipes, as StepConfig::images says. `index` tells micro-batches apart; -1: none.
struct MicroBatch {
  std::span<const float> images, targets, weights, teacher;
  int64_t seed = 0, step = 0, position = 0;  // of the first sample within the step
  std::span<const uint8_t> pixels = {};
  std::span<const ImageRecipe> recipes = {};
  int64_t index = -1;
};

class TrainStep {
 public:
  TrainStep(const StepPlan& plan, RankContext& rank);

  // Fills every parameter, starts the averages from them, and resets optimizer state and loss scale.
  void start(const ParamFiller& fill);
  // After persistent values were written from outside (a checkpoint): refreshes what is derived from them.
  void refresh();

  // Forward, backward, gradients added to their sums.
  void run_micro(const MicroBatch& batch);
  // Starts to bring the images (or pixels) of a micro-batch to come while the device computes, where it
  // can. They stay as they are until that micro-batch has run or forget_ahead(), which waits for them, was
  // called.
  void send_ahead(int64_t index, std::span<const std::byte> images);
  bool takes_ahead() const { return prefetch_.bytes() > 0; }
  void forget_ahead();
  // run_micro() with the images, targets and weights that are there already, where the device keeps them.
  void run_micro_again(const MicroBatch& batch);
  bool keeps_inputs() const { return micro_.keeps_inputs(); }
  // Until the micro-batch that was run last is on the device and its bytes on the host may be reused; the
  // device may still compute it.
  void wait_for_inputs() { filled_->synchronize(); }
  std::span<const float> losses() const;  // per image, of the last micro-batch
  std::span<const float> logits() const;

  // One update from the gradient sums, which become zero; waits for it.
  StepValues run_update(double lr);
  // The loss of all micro-batches since it was last taken, each image's times its weight: summed on the
  // device, so that nothing waits for a micro-batch.
  double take_loss();

  // What the device counted of updates so far, by UpdateCounter, and the loss scale it stands at.
  std::array<double, kUpdateCounters> update_counters() const;
  double loss_scale() const;
  void forget_skips_in_a_row();

  // Logits of `count` images, at most the plan's eval batch.
  std::span<const float> evaluate(std::span<const float> images, int64_t count, bool average);

  const StepPlan& plan() const { return plan_; }
  const PersistentStore& store() const { return store_; }
  Executor& micro() { return micro_; }
  Executor& update() { return update_; }
  RankContext& rank() const { return rank_; }
  size_t allocated_bytes() const;

 private:
  void fill(const char* input, std::span<const float> values);
  void fill_bytes(const char* input, std::span<const std::byte> bytes);
  void fill_images(const MicroBatch& batch);
  bool take_ahead(const char* input, const MicroBatch& batch);
  std::span<const float> floats(const TensorView& view, std::vector<float>& copy) const;

  const StepPlan& plan_;
  RankContext& rank_;
  PersistentStore store_;
  Buffer arena_, staging_;
  Prefetch prefetch_;
  Executor micro_, update_, eval_;
  std::unique_ptr<Executor> eval_average_, refresh_;
  std::unique_ptr<Event> filled_;               // behind the uploads of the last micro-batch
  int64_t ahead_ = -1;                          // the micro-batch whose images land or have landed
  mutable std::vector<float> losses_, logits_;  // outputs that are not f32, converted
};

}  // namespace vitrail
