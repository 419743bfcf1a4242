// From a config to everything a run needs before its first step: data, model, the step's config. Allocates no
// device memory.
#pragma once

#include "data/loader.h"
#include "train/model_setup.h"
#include "train/step_plan.h"

namespace vitrail {

class MeshCommunicators;

struct RunSetup {
  TrainConfig config;  // resolved
  DataSplits data;
  std::unique_ptr<PreparedModel> model;
  StepConfig step;
  int64_t steps_per_epoch = 0, total_steps = 0;
  std::vector<std::string> notes;
  size_t decoding_bytes = 0;  // most bytes that the loaders' workers hold while they decode
  std::string images;         // where images are made and why; empty: on the CPU by default

  BatchShare train_share, eval_share;             // of micro-batches
  std::shared_ptr<BatchRelay> relay, eval_relay;  // to ranks with the same images, once they can be reached
  void reach(MeshCommunicators* ranks);           // makes them; null: there are none
  std::string measured_on = {};  // the ranks whose measured speed the shares follow; empty: none

  // The images of a micro-batch by place along dp, and where a batch of an evaluation is cut.
  std::vector<int64_t> shares() const;
  std::vector<int64_t> eval_cuts() const;
  int64_t epoch_of(int64_t update) const { return update / steps_per_epoch; }
  LoaderSettings loader_settings(Purpose purpose) const;
  // Returns the bytes that the loaders will hold beside the step's own memory.
  size_t loader_bytes() const { return loader_bytes(config.train.micro_batch); }
  // Returns the same for another micro-batch, which evaluation does not exceed.
  size_t loader_bytes(int64_t micro_batch) const;
};

// Sets up one rank of a run on `device`, which decides where its images are made. `world` is the number of
// ranks.
struct RankPlace {
  int rank = 0, world = 1;
  int sharing = 1;      // ranks on the same host
  int overlapping = 0;  // of them, those on the same cores; 0: all
};
// Cuts batches by these shares, one a place along dp; none: evenly.
void take_shares(RunSetup& setup, const std::vector<int64_t>& shares);
RunSetup set_up(const TrainConfig& given, const DeviceInfo& device = {}, RankPlace place = {});

}  // namespace vitrail
