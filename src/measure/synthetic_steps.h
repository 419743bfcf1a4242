// Whole training updates on one synthetic micro-batch that stays in memory: the work of `bench train`,
// without a dataset and without a loader. Knows no option and prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "measure/bench.h"
#include "train/run_plan.h"
#include "train/train_step.h"

namespace vitrail {

class SyntheticSteps {
 public:
  SyntheticSteps(const RunPlan& plan, RankContext& rank);

  void run();
  // Times nodes in updates of their own, on devices where that needs them; returns how many.
  int64_t time_nodes();
  // Returns the mean loss over the synthetic images with the present weights: this rank's part of it, since a
  // rank has a part of the images. All ranks call it.
  double loss_share();

  int64_t steps() const { return steps_; }
  size_t allocated_bytes() const { return step_.allocated_bytes(); }  // what the rank's buffers hold
  Executor& micro() { return step_.micro(); }
  Executor& update() { return step_.update(); }
  // The programs of an update in the order in which they run.
  std::vector<Executor*> programs();
  void reset_times();  // of their nodes
  // Returns what ranks exchanged since the last call; all zero for one rank.
  CollectiveTimes take_collective_times() { return step_.take_collective_times(); }

 private:
  void make_pixels(const StepConfig& step, int64_t first);  // of the batch of all ranks
  void run_micro(int64_t micro);
  MicroBatch batch_at(int64_t micro) const;
  double pipeline_loss();

  const TrainConfig& config_;
  int64_t images_here_;  // of a micro-batch, on this rank
  TrainStep step_;
  std::vector<float> images_, targets_, weights_;
  std::vector<uint8_t> pixels_;
  std::vector<ImageRecipe> recipes_;
  int64_t steps_ = 0;
};

// Returns the facts of a benchmark of such steps that are known before it is measured.
BenchResult described(const RunPlan& plan);
// Returns "adamw, f32, recompute none, micro-batches of 8", and the same as JSON.
std::string training_text(const RunPlan& plan);
nlohmann::ordered_json training_facts(const RunPlan& plan);

}  // namespace vitrail
