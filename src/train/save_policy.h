// Decides when a run saves, and how it handles a failed save: the failure is reported and the run goes on,
// since the disk may have room again later. Only the first save, before training starts, and the last must
// succeed. Several ranks write a checkpoint together, and the first one alone what is a model.
#pragma once

#include <chrono>

#include "train/checkpoint_keeper.h"
#include "train/team.h"

namespace vitrail {

class SavePolicy {
 public:
  struct Calls {
    std::function<void(const char* what, const std::string& text)> event;
    std::function<void()> before_save;        // makes durable what the checkpoint depends on
    std::function<void(int64_t step)> saved;  // a checkpoint is on the disk; exceptions pass
  };
  // `average` says whether best/ holds the averaged weights.
  SavePolicy(CheckpointKeeper& keeper, const Team& team, const TrainStep& step, const RunConfig& config,
             bool average, Calls calls);

  const Team& team() const { return team_; }

  // Saves step 0, so that a run can be resumed from its first second, and to show that saving works. Errors
  // pass.
  void save_first(const Progress& progress);
  // Returns whether the config asks for a save after this step. A state after skipped updates is not worth a
  // rollback, so the save waits for an update that was made.
  bool is_due(const Progress& progress, bool by_time) const;
  void save_if_due(const Progress& progress, bool by_time, const std::function<bool()>& update_was_made);
  // Returns whether the time between checkpoints is over.
  bool time_is_over() const;
  // Saves now, unless this step is saved already.
  void save(const Progress& progress);
  // Saves now and replaces an existing checkpoint of this step, after a rollback to it.
  void save_anew(const Progress& progress);
  // Saves at the end of a process; throws Error(kWrite) when not everything could be kept.
  void save_last(const Progress& progress);

  // Writes best/; false when it could not be written, and then the result does not count as the best. For
  // lack of room the oldest checkpoints go, down to `least_good` good ones.
  bool write_best(int64_t least_good = kLeastGood);

 private:
  using Clock = std::chrono::steady_clock;
  void write(const Progress& progress, int64_t least_good = kLeastGood);
  [[noreturn]] void pass_on(const SaveFailed& failed) const;
  bool keep_model();
  Error model_alone(const std::string& why) const;
  void write_model(const std::function<void()>& write);
  void report_saved(const Progress& progress) const;
  enum class By { kAll, kFirst };  // the ranks that write; the others know when the first one has failed
  bool attempt(const char* what, By by, const std::function<void()>& write);

  CheckpointKeeper& keeper_;
  const Team& team_;
  const TrainStep& step_;
  const RunConfig& config_;
  bool average_;
  Calls calls_;
  Clock::time_point last_save_ = Clock::now();
  bool due_ = false;
};

}  // namespace vitrail
