// From the data into the step: batch after batch while a run goes on, and once, before it, what stays on the
// device. Decides nothing.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "train/run_setup.h"
#include "train/train_config.h"
#include "train/train_step.h"

namespace vitrail {

// From the loader into the step, one micro-batch after the other: the images of the next one travel to the
// device while it computes this one. Decides nothing.
class Teacher;
class TrainStep;

class MicroFeed {
 public:
  // `teacher`: null for none. All must outlive it.
  MicroFeed(std::unique_ptr<Loader> loader, TrainStep& step, Teacher* teacher, const RunConfig& config)
      : loader_(std::move(loader)), step_(step), teacher_(teacher), config_(config) {}

  // Forward and backward of the next micro-batch, number `micro` of the update `step`; returns while a device
  // of its own still computes it.
  void run(int64_t step, int64_t micro);
  // The next micro-batch will be the first of this update.
  void seek(int64_t step);
  double wait_seconds() { return loader_->wait_seconds(); }

 private:
  void send_ahead();

  std::unique_ptr<Loader> loader_;
  TrainStep& step_;
  Teacher* teacher_;
  const RunConfig& config_;
  std::vector<float> weights_;
};

// The data that lies on the device beside a step which makes its own images. Which form images have was
// decided when the run was set up.

// Once, before the first micro-batch: the levels and, where all images are kept there, those. Nothing for a
// step that takes floats.
void bring_images(const RunSetup& setup, const TrainStep& step);

}  // namespace vitrail
