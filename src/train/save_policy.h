// When a run saves, and what becomes of a save that fails: it is told and the run goes on, since the disk may
// have room again later. Only the first save must succeed, before anything is learnt, and the last.
#pragma once

#include <chrono>

#include "train/checkpoint_keeper.h"

namespace vitrail {

class SavePolicy {
 public:
  struct Calls {
    std::function<void(const char* what, const std::string& text)> event;
    std::function<void()> before_save;        // what a checkpoint stands on becomes durable first
    std::function<void(int64_t step)> saved;  // a checkpoint lies on the disk; what it throws passes
  };
  // `average`: whether best/ holds the averaged weights.
  SavePolicy(CheckpointKeeper& keeper, const TrainStep& step, const RunConfig& config, bool average,
             Calls calls);

  // The checkpoint of step 0, so that a run can be resumed from its first second; shows as well that all a
  // save needs is there. Errors pass.
  void save_first(const Progress& progress);
  // When the config says so. Among skipped updates there is nothing worth going back to: the save waits for
  // one that was made.
  void save_if_due(const Progress& progress, const std::function<bool()>& update_was_made);
  // Now, unless this step is saved.
  void save(const Progress& progress);
  // Now, in place of what is saved of this step: the run went back to it.
  void save_anew(const Progress& progress);
  // At the end of a process: Error(kWrite) when there is no way to keep all of it.
  void save_last(const Progress& progress);

  // A result counts as the best when its model is safe: false when it could not be written.
  bool write_best();

 private:
  using Clock = std::chrono::steady_clock;
  void write(const Progress& progress, int64_t least_good = kLeastGood);
  void tell_saved(const Progress& progress) const;
  bool attempt(const char* what, const std::function<void()>& write);

  CheckpointKeeper& keeper_;
  const TrainStep& step_;
  const RunConfig& config_;
  bool average_;
  Calls calls_;
  Clock::time_point last_save_ = Clock::now();
  bool due_ = false;
};

}  // namespace vitrail
