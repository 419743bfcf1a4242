// What a run keeps on disk besides its log: checkpoints, and the best model as a folder. Saves, finds what to
// resume from, and refuses to mix two runs. The saver decides when, the trainer what to resume.
#pragma once

#include "base/run_files.h"
#include "train/learned_from.h"
#include "train/run_setup.h"
#include "train/train_state.h"
#include "train/trainer.h"

namespace vitrail {

class CheckpointKeeper {
 public:
  using Tell = std::function<void(const std::string&)>;

  // `machine`: backend, instruction set and program version, told when they change.
  CheckpointKeeper(const TrainPlace& place, const RunSetup& setup, Json machine, Tell tell);

  // Error(kUsage) when a fresh run would share its folder with another one's checkpoints.
  void refuse_foreign_run() const;
  // Once, before anything is saved: puts back what a death had left moved aside, removes unfinished
  // checkpoints, and refuses a best/ or last/ that is not a run's: Error(kWrite). `sole`: nobody else can be
  // at work in the folder.
  void prepare(bool sole);

  // The newest good checkpoint into the step; nothing when there is none to resume from. Error(kData) when
  // there are checkpoints and none is good, Error(kConfig) when they belong to another run.
  std::optional<Progress> restore_newest(TrainStep& step);

  // Hears of each checkpoint that had to make room, before its time.
  void on_made_room(std::function<void(int64_t step)> tell) { checkpoints_.on_made_room(std::move(tell)); }
  // Error(kWrite) when it cannot be written; the newest `least_good` checkpoints are then as they were.
  void save(const Progress& progress, const TrainStep& step, int64_t least_good = kLeastGood);
  // Replaces best/.
  void write_best(const TrainStep& step, bool average);
  // The model alone, for when there is no way to save a run's last checkpoint; the next save removes it.
  // Returns its folder.
  std::string write_last(const TrainStep& step, bool average);

  int64_t saved_step() const { return saved_step_; }

 private:
  Json facts(const Progress& progress) const;
  bool require_same_run(const Json& saved) const;
  uint64_t model_bytes() const;
  bool is_own(const std::string& name) const;
  void require_own(const std::string& name) const;
  void put_model(const std::string& name, const TrainStep& step, bool average);

  TrainPlace place_;
  RunFiles files_;
  const RunSetup& setup_;
  Json machine_, train_data_, learned_, val_data_;
  Tell tell_;
  CheckpointStore checkpoints_;
  int64_t saved_step_ = -1;
};

}  // namespace vitrail
