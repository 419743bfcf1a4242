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
  // checkpoints, and throws Error(kWrite) for a best/ or last/ that no run has written or that is a link.
  // `sole` says that no other process can be writing to the folder.
  void prepare(bool sole);

  // Loads the newest good checkpoint into the step; returns nothing when there is none to resume from. All
  // ranks call it and go on from the same one. Throws Error(kData) when there are checkpoints and none is
  // good, Error(kConfig) when they belong to another run.
  std::optional<Progress> restore_newest(TrainStep& step) { return restore(step, {}); }
  // The same from the newest that is good and was verified; those after it are removed. Nothing where there
  // is none.
  std::optional<Progress> restore_verified(TrainStep& step);
  // The same from the newest good one of an earlier step than `before` that was saved right after an update
  // that was made.
  std::optional<Progress> restore_before(TrainStep& step, int64_t before);
  // Removes the checkpoints after the one that restore_before() would take. Returns its step where there were
  // some. The first rank calls it alone.
  std::optional<int64_t> drop_since(int64_t before);
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
  // Replaces best/. Where there is no room, the oldest checkpoints go first, down to `least_good` good ones.
  void write_best(const TrainStep& step, bool average, int64_t least_good = kLeastGood);
  // Writes the model alone, for a run whose last checkpoint cannot be saved; the next save removes it.
  void write_last(const TrainStep& step, bool average);
  std::string last_folder() const { return files_.at(RunFiles::kLast); }

  int64_t saved_step() const { return saved_step_; }
  // Returns the teacher_facts() of the run.
  const Json& teacher() const { return teacher_; }

  // Returns a warning where the model has learned, or learns, from validation images; else nothing.
  std::string seen_in_validation() const;

 private:
  using Wanted = CheckpointStore::Wanted;
  std::optional<Progress> restore(TrainStep& step, const Wanted& wanted);
  std::optional<Progress> restore_and_drop(TrainStep& step, const Wanted& wanted);
  Json facts(const Progress& progress) const;
  bool is_comparable(const Json& saved) const;
  void keep_earlier(const Json& saved);
  uint64_t model_bytes() const;
  bool is_own(const std::string& name) const;
  void require_own(const std::string& name) const;
  void refuse_link(const std::string& name) const;
  void put_model(const std::string& name, const TrainStep& step, bool average);

  TrainPlace place_;
  RunFiles files_;
  const RunSetup& setup_;
  Json machine_, train_data_;
  LearnedFrom learned_;
  Json val_data_, card_, teacher_;
  Report report_;
  CheckpointStore checkpoints_;
  int64_t saved_step_ = -1, verified_step_ = -1;
  int64_t passing_ = -1;  // the checkpoint saved among skipped updates, which the next one replaces
};

}  // namespace vitrail
