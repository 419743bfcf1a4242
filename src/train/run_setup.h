// From a config to everything a run needs before its first step: data, model, the step and its plan. Shared
// by the trainer and `plan --config`.
#pragma once

#include "data/loader.h"
#include "train/model_setup.h"
#include "train/step_plan.h"

namespace vitrail {

struct RunSetup {
  TrainConfig config;  // resolved
  DataSplits data;
  std::unique_ptr<PreparedModel> model;
  StepConfig step;
  int64_t steps_per_epoch = 0, total_steps = 0;
  std::vector<std::string> notes;
  size_t decoding_bytes = 0;  // what the loaders' workers may hold for a moment while they decode
  std::string images;  // where they are made and why; empty: on the CPU, as nobody asked for anything else

  int64_t epoch_of(int64_t update) const { return update / steps_per_epoch; }
  LoaderSettings loader_settings(Purpose purpose) const;
  // Bytes the loaders will hold beside the step's own memory.
  size_t loader_bytes() const { return loader_bytes(config.train.micro_batch); }
  // The same for another micro-batch, which evaluation does not exceed.
  size_t loader_bytes(int64_t micro_batch) const;
};

// For a run on `device`, which decides where its images are made.
RunSetup set_up(const TrainConfig& config, const DeviceInfo& device = {});

}  // namespace vitrail
