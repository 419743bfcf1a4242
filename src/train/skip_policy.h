// Decides what a run does about updates that were skipped because their gradients held NaN or Inf: a few are
// reported, too many in a row roll the run back at half the learning rate, to the newest checkpoint from
// which an update was made: from a later one it would come to the same gradients again. The device decides
// which updates are skipped and counts them.
#pragma once

#include "train/run_journal.h"
#include "train/save_policy.h"

namespace vitrail {

class SkipPolicy {
 public:
  SkipPolicy(TrainStep& step, const RunConfig& config, CheckpointKeeper& keeper, SavePolicy& saves,
             RunJournal& journal);

  // Returns the number of updates skipped so far, this one included.
  int64_t skipped_after(const StepValues& values);
  // Returns whether the last update was made; reads a counter from the device.
  bool last_was_made() const { return counter(kSkippedInARow) == 0; }

  // Called after an update; returns whether the run was rolled back, and `progress` with it. Throws
  // Error(kNumerics) when too many updates were skipped and there is no checkpoint to return to, or a
  // rollback did not help; what --resume goes on from is then a checkpoint that a rollback would take.
  bool handle(const StepValues& values, Progress& progress);

 private:
  int64_t counter(UpdateCounter which) const { return static_cast<int64_t>(step_.update_counters()[which]); }
  void go_back(const Progress& to, Progress& progress, int64_t in_a_row);
  [[noreturn]] void give_up(const Progress& progress, int64_t in_a_row, const char* why);

  TrainStep& step_;
  const RunConfig& config_;
  CheckpointKeeper& keeper_;
  SavePolicy& saves_;
  RunJournal& journal_;
  int64_t skipped_;
};

}  // namespace vitrail
