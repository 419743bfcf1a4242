// Keeps what a run has on disk besides its log: checkpoints, and the best model as a folder. Saves, finds
// what to resume from, and refuses to mix two runs. Knows neither when to save (SavePolicy) nor whether to
// resume (Trainer).
#pragma once

#include "base/run_files.h"
#include "train/learned_from.h"
#include "train/run_setup.h"
#include "train/train_state.h"
#include "train/trainer.h"

namespace vitrail {

// Returns the facts besides the config on which the bits of a result depend.
Json device_facts(const TrainPlace& place, const Backend& backend, const DeviceInfo& device);

class CheckpointKeeper {
 public:
  using Report = std::function<void(const std::string&)>;

  // `machine` holds backend, instruction set and program version, whose changes are reported through
  // `report`.
  CheckpointKeeper(const TrainPlace& place, const RunSetup& setup, Json machine, Report report);

  // Throws Error(kUsage) when a fresh run would share its folder with the checkpoints of another.
  void refuse_foreign_run() const;
  // Called once, before anything is saved: restores what a killed process had moved aside, removes unfinished
  // checkpoints, and throws Error(kWrite) for a best/ or last/ that no run has written. `sole` says that no
  // other process can be writing to the folder.
  void prepare(bool sole);

  // Loads the newest good checkpoint into the step; returns nothing when there is none to resume from. All
  // ranks call it and go on from the same one. Throws Error(kData) when there are checkpoints and none is
  // good, Error(kConfig) when they belong to another run.
  std::optional<Progress> restore_newest(TrainStep& step) { return restore(step, {}); }
  // The same from the newest that is good and was verified; those after it are removed. Nothing where there
  // is none.
  std::optional<Progress> restore_verified(TrainStep& step);
  // The replicas of this step's values agree: a checkpoint of it counts as verified, and says so.
  void note_verified(int64_t step) { verified_step_ = step; }
  bool is_verified(int64_t step) const { return verified_step_ == step; }

  // The shares that the newest checkpoint's run had measured on these ranks; none: on others, or nothing. The
  // first rank calls it alone.
  std::vector<int64_t> measured_shares(const std::string& measured_on);

  // Sets a callback for each checkpoint that was removed early to make room.
  void on_made_room(std::function<void(int64_t step)> tell) { checkpoints_.on_made_room(std::move(tell)); }
  // Throws Error(kWrite) when the checkpoint cannot be written; the newest `least_good` checkpoints are then
  // unchanged. All ranks call it, and a failure of one, SaveFailed, is thrown on all. `before` is called
  // first, on the first rank.
  void save(const Progress& progress, const TrainStep& step, int64_t least_good,
            std::function<void()> before);
  // Replaces best/.
  void write_best(const TrainStep& step, bool average);
  // Writes the model alone, for a run whose last checkpoint cannot be saved; the next save removes it.
  void write_last(const TrainStep& step, bool average);
  std::string last_folder() const { return files_.at(RunFiles::kLast); }

  int64_t saved_step() const { return saved_step_; }

 private:
  using Wanted = CheckpointStore::Wanted;
  std::optional<Progress> restore(TrainStep& step, const Wanted& wanted);
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
  Report report_;
  CheckpointStore checkpoints_;
  int64_t saved_step_ = -1, verified_step_ = -1;
};

}  // namespace vitrail
