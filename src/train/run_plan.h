// The needs of a training run, found before it starts: data and model as the run will open them, the planned
// step, every byte it will hold, its arithmetic. Allocates nothing and knows no option.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/device_file.h"
#include "train/run_setup.h"

namespace vitrail {

class Teacher;

class RunPlan {
 public:
  // Where the data is missing, or with `classes`, a dataset of that many classes is assumed, which notes()
  // records. A mesh in the config is planned for the rank that needs most.
  RunPlan(const TrainConfig& config, std::optional<int64_t> classes, const Backend& backend,
          const DeviceInfo& device);
  RunPlan(const TrainConfig& config, std::optional<int64_t> classes, const std::string& backend,
          const DeviceInfo& device)
      : RunPlan(config, classes, find_backend(backend), device) {}
  // The same for one rank of a run.
  RunPlan(TrainConfig config, std::optional<int64_t> classes, const Backend& backend, DeviceInfo device,
          RankPlace place);

  const DeviceInfo& device() const { return device_; }
  const RunSetup& setup() const { return setup_; }
  const StepPlan& step() const { return step_; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool knows_data() const { return knows_data_; }
  // Returns the number of updates; 0: not known, since it depends on the number of images.
  int64_t total_steps() const;

  // Returns bytes by the name of the category, those outside the step's plan last; they add up to
  // peak_bytes().
  NamedBytes memory_rows() const;
  size_t peak_bytes() const { return step_.peak_bytes() + other_bytes(); }
  size_t lower_bound_bytes() const { return step_.lower_bound_bytes() + other_bytes(); }
  // Returns what an offload keeps in the host's memory, and what is loaded there for a device with memory of
  // its own; empty without an offload or where both memories are one.
  NamedBytes host_rows() const;

  // Returns the number of ranks, the one that is planned, and the collectives of an update.
  int ranks() const { return setup_.step.distribution.mesh.world(); }
  int rank() const { return setup_.step.distribution.mesh.rank; }
  // The rank that needs least; where ranks need different memory, the planned one needs most.
  struct NeededLeast {
    int rank = 0;
    size_t bytes = 0;
  };
  const NeededLeast& least() const { return least_; }
  // Holds what a rank that was planned needs, where ranks take other shares of a micro-batch.
  struct RankNeed {
    int rank = 0;
    int64_t images = 0;  // of a micro-batch
    size_t bytes = 0;
  };
  const std::vector<RankNeed>& needs() const { return needs_; }
  std::vector<CollectiveRow> collectives() const;

  // A stage of a pipeline, by the rank of it that needs most.
  struct Stage {
    int rank = 0;
    size_t peak_bytes = 0;
    int64_t in_flight = 0;  // micro-batches that it keeps at most, each of its chunks counted
    double flops = 0;       // an update
    double sent_bytes = 0;  // to other stages, an update
  };
  // They are empty where there is no pipeline, or one rank alone was planned.
  const std::vector<Stage>& stages() const { return stages_; }
  // The blocks of a stage: "0-2, 6-8".
  std::string blocks_of(int stage) const;

  // The teacher for micro-batches of so many images; null: nothing is distilled.
  std::unique_ptr<Teacher> teacher(int64_t micro_batch) const;

  int64_t trained_params() const;
  double update_flops() const;  // of one update: its micro-batches and the optimizer
  // Predicts the seconds of an update, as StepPlan does.
  double update_seconds(const DeviceFile& device) const;

  // The same run with another level of recomputation.
  struct Level {
    Recompute level;
    size_t peak_bytes;
    double update_flops;
  };
  std::vector<Level> recompute_levels() const;

  // The first offload with which the same run needs no more than `available` of the device; nothing where
  // none does. Those that also need recomputation are asked only `with_recompute`.
  struct Offloaded {
    std::string settings;
    size_t peak_bytes, host_bytes;
  };
  std::optional<Offloaded> offload_that_fits(size_t available, bool with_recompute) const;

  // The same run with another choice of mesh.accumulate; empty where it makes no difference.
  struct Sums {
    KeptSums kept;
    size_t peak_bytes;
    double sent_bytes;  // by one rank, an update
  };
  std::vector<Sums> kept_sums() const;

  // Returns the largest micro-batch whose run stays within `bytes`; 0: none.
  int64_t largest_micro_batch(size_t bytes) const;

 private:
  // Bytes held beside the step in the same memory; for a GPU without those of the loaders.
  size_t other_bytes() const { return loaders_beside() + decoding_beside() + teacher_bytes_; }
  size_t decoding_beside() const { return device_.shares_host_memory ? setup_.decoding_bytes : 0; }
  size_t loaders_beside() const { return device_.shares_host_memory ? setup_.loader_bytes() : 0; }
  void note_stage(std::vector<Stage>& stages) const;
  size_t peak_at(int64_t micro_batch) const;
  size_t teacher_bytes(int64_t micro_batch) const;
  void set_up_run(TrainConfig config, std::optional<int64_t> asked, RankPlace place);
  StepPlan plan(const StepConfig& config) const;

  const Backend* backend_;
  DeviceInfo device_;
  bool knows_data_ = true;
  std::vector<std::string> notes_;
  RunSetup setup_;
  StepPlan step_;
  size_t teacher_bytes_ = 0;  // 0: none
  NeededLeast least_;         // of all ranks, where they were planned
  std::vector<RankNeed> needs_;
  std::vector<Stage> stages_;
};

// Sets the images of a micro-batch. A batch or an accumulation that `holds` is kept, and refused later if it
// does not fit; others give way.
void take_micro_batch(int64_t images, bool batch_holds, bool accumulation_holds, RunConfig& train);

}  // namespace vitrail
