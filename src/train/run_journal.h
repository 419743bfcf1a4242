// The reports of a run while it goes on: lines of its log and calls of its owner's hooks. Decides neither
// when a line is due nor what it means.
#pragma once

#include <memory>

#include "telemetry/run_log.h"
#include "train/train_state.h"
#include "train/trainer.h"

namespace vitrail {

class RunJournal {
 public:
  // Events carry the step of `progress`. All arguments must outlive the object.
  // Without `writes`, there is no log: another rank keeps it.
  RunJournal(const TrainPlace& place, const TrainHooks& hooks, const Progress& progress, bool tensorboard,
             bool writes = true)
      : place_(place), hooks_(hooks), progress_(progress), tensorboard_(tensorboard), writes_(writes) {}

  // Opens the log. After a rollback it is called again and removes the steps that were undone.
  void open();
  void close() { log_.reset(); }
  void sync() {
    if (log_) log_->sync();
  }

  void note(const std::string& text) const {
    if (hooks_.note) hooks_.note(text);
  }
  // Reports an event; before open() to the hook alone.
  void event(const char* what, const std::string& text);
  // Reports what every start finds again: to the log once, where the run begins. Nothing for an empty text.
  void finding(const char* what, const std::string& text);
  // Reports every update, and those that are logged to the log, too.
  void step(const TrainStatus& status);
  void log(TrainStatus status);
  void eval(const EvalStatus& status);
  void timing(const TimingStatus& status);
  void start(const StartStatus& status);
  void finish_epoch(int64_t epoch, double lr) {
    if (log_) log_->finish_epoch(epoch, progress_.step, lr);
  }

 private:
  const TrainPlace& place_;
  const TrainHooks& hooks_;
  const Progress& progress_;
  bool tensorboard_, writes_;
  std::unique_ptr<RunLog> log_;
  double unlogged_s_ = 0, unlogged_wait_s_ = 0;  // since the last line of the log
};

}  // namespace vitrail
