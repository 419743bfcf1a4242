// From the loader into the step: batch after batch during a run, and once, before it, the data that stays on
// the device. Decides nothing.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "train/run_setup.h"
#include "train/train_config.h"
#include "train/train_step.h"

namespace vitrail {

class Teacher;
class TrainStep;

// Feeds the step one micro-batch after the other from the loader: the images of the next one are prefetched
// to the device while it computes this one.
class MicroFeed {
 public:
  // `teacher` may be null. All arguments must outlive the object.
  MicroFeed(std::unique_ptr<Loader> loader, TrainStep& step, Teacher* teacher, const RunConfig& config)
      : loader_(std::move(loader)), step_(step), teacher_(teacher), config_(config) {}

  // Runs forward and backward of all micro-batches of the update `step`; on a GPU it returns before they are
  // done.
  void run_update(int64_t step);
  // Runs the next micro-batch alone, number `micro`.
  void run(int64_t step, int64_t micro);
  // Makes the next micro-batch the first of this update.
  void seek(int64_t step);
  double take_wait_seconds() { return loader_->take_wait_seconds(); }
  // Returns how many images that could be read it has fed since the last call.
  int64_t take_images() { return std::exchange(images_, 0); }
  // Calls it once, with the next micro-batch, before that runs.
  void show_next(std::function<void(const MicroBatch&)> show) { show_ = std::move(show); }
  double loading_seconds() { return loader_->cpu_seconds(); }

 private:
  MicroBatch batch_at(int64_t step, int64_t micro) const;
  void take(const Batch& batch, MicroBatch& target);
  void prefetch_next();

  std::unique_ptr<Loader> loader_;
  TrainStep& step_;
  Teacher* teacher_;
  const RunConfig& config_;
  std::vector<float> weights_;
  int64_t images_ = 0;
  std::function<void(const MicroBatch&)> show_;
};

// Says how much processor time the loaders of all ranks took.
std::string loading_text(const std::vector<double>& seconds);

// Copies the data that a step needs to make its own images to the device, once, before the first micro-batch:
// the levels, and for ImageForm::kStored all images. Does nothing for a step that takes floats.
void bring_images(const RunSetup& setup, const TrainStep& step);

}  // namespace vitrail
