// A planned step with its memory: allocates what the plan says, holds weights and optimizer state, runs
// micro-batches, updates and evaluation forwards. Holds no policy about when.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "runtime/executor.h"
#include "runtime/prefetch.h"
#include "train/offload_run.h"
#include "train/step_plan.h"
#include "train/whole_values.h"

namespace vitrail {

// The inputs of one micro-batch, row-major; `teacher` only when distilling. Holds images, or pixels and
// recipes, as StepConfig::images says. `index` numbers prefetched micro-batches; -1: none.
struct MicroBatch {
  std::span<const float> images, targets, weights, teacher;
  int64_t seed = 0, step = 0, position = 0;  // of the first sample within the step
  std::span<const uint8_t> pixels = {};
  std::span<const ImageRecipe> recipes = {};
  int64_t index = -1;
  bool last = true;  // of its update: ranks sum their gradients in it
};

class TrainStep {
 public:
  TrainStep(const StepPlan& plan, RankContext& rank);

  // Fills every parameter, starts the averages from them, and resets optimizer state and loss scale.
  void start(const ParamFiller& fill);
  // Recomputes derived values after persistent values were written from outside (a checkpoint).
  void refresh();

  // Runs forward and backward and adds the gradients to their sums.
  void run_micro(const MicroBatch& batch);
  // The same for all micro-batches of an update, where the plan is of a pipeline's stage. `batch_of` is asked
  // for each micro-batch in order, with `data` where the stage reads more of it than its place; what it
  // returns is read before the next call.
  using BatchOf = std::function<MicroBatch(int64_t micro, bool data)>;
  void run_pipeline(const BatchOf& batch_of);
  // Prefetches the images (or pixels) of a later micro-batch while the device computes, where it can. The
  // caller keeps them unchanged until that micro-batch has run or until drop_prefetched(), which waits for
  // the copy, returns.
  void prefetch(int64_t index, std::span<const std::byte> images);
  bool prefetches() const { return prefetch_.bytes() > 0; }
  void drop_prefetched();
  // Runs again with the images, targets and weights that are on the device already, where it keeps them.
  void run_micro_again(const MicroBatch& batch);
  bool keeps_inputs() const { return micro_.keeps_inputs(); }
  // Waits until the last micro-batch is on the device and its bytes on the host may be reused; the device may
  // still compute it.
  void wait_for_inputs() { filled_->synchronize(); }
  std::span<const float> losses() const;  // per image, of the last micro-batch
  std::span<const float> logits() const;

  // Makes one update from the gradient sums, which become zero, and waits for it.
  StepValues run_update(double lr);
  // Returns the weighted sum of the losses of all images since the last call. It is summed on the device, so
  // that no micro-batch is waited for.
  double take_loss();

  // Returns the device's counts of updates so far, by UpdateCounter, and the present loss scale.
  std::array<double, kUpdateCounters> update_counters() const;
  double loss_scale() const;

  // Returns the logits of `count` images, at most the plan's eval batch.
  std::span<const float> evaluate(std::span<const float> images, int64_t count, bool average);

  const StepPlan& plan() const { return plan_; }
  const PersistentStore& store() const { return store_; }
  // The values as a run of one rank would have them.
  WholeValues& whole() const { return whole_; }
  Executor& micro() { return micro_; }
  Executor& update() { return update_; }
  Executor* last_micro() { return last_micro_.get(); }  // null: there is one rank
  // Returns what ranks exchanged in updates since the last call; all zero for one rank.
  CollectiveTimes take_collective_times();
  RankContext& rank() const { return rank_; }
  size_t allocated_bytes() const;       // of what the plan's peak counts
  size_t host_allocated_bytes() const;  // of the host's memory, with an offload

 private:
  Executor& program_of(const MicroBatch& batch) { return batch.last && last_micro_ ? *last_micro_ : micro_; }
  void fill(const TensorView& target, std::span<const float> values);
  void fill_bytes(const TensorView& target, std::span<const std::byte> bytes);
  void fill_counters(const TensorView& target, const MicroBatch& batch);
  void begin_turn(const TurnOp& turn, std::span<const TensorView> inputs, const BatchOf& batch_of);
  void check_recipes(const MicroBatch& batch, int32_t batch_rows) const;
  void start_parameter(const PersistentValue& value, const ParamFiller& fill);
  void write_own_part(const PersistentValue& value, std::span<const float> whole);
  void fill_images(const MicroBatch& batch);
  void clear_sums_of_others();
  void update_on_host(std::span<const double> control, std::span<const double> hyper);
  void compute_with(bool average);
  bool use_prefetched(const char* input, const MicroBatch& batch);
  std::span<const float> floats(const TensorView& view, std::vector<float>& copy) const;

  const StepPlan& plan_;
  RankContext& rank_;
  PersistentStore store_;
  mutable WholeValues whole_;
  Buffer arena_, staging_;
  Prefetch prefetch_;
  Executor micro_, update_, eval_;
  std::unique_ptr<Executor> last_micro_, eval_average_, refresh_, gather_;
  std::unique_ptr<OffloadRun> offload_;
  bool averaged_ = false;          // with an offload, the device's copies are those of the averages
  const Executor* ran_ = &micro_;  // the micro program that ran last
  std::unique_ptr<Event> filled_;  // recorded after the uploads of the last micro-batch
  int64_t prefetched_ = -1;        // the micro-batch whose images were prefetched
  mutable std::vector<float> losses_, logits_;  // outputs that are not f32, converted
};

}  // namespace vitrail
