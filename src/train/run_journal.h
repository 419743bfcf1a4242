// What a run tells while it goes on: the lines of its log and the calls its owner asked for. Decides neither
// when a line is due nor what it means.
#pragma once

#include <memory>

#include "telemetry/run_log.h"
#include "train/train_state.h"
#include "train/trainer.h"

namespace vitrail {

class RunJournal {
 public:
  // Events carry the step `progress` stands on. All must outlive it.
  RunJournal(const TrainPlace& place, const TrainHooks& hooks, const Progress& progress, bool tensorboard)
      : place_(place), hooks_(hooks), progress_(progress), tensorboard_(tensorboard) {}

  // Opens the log; again, when the run went back: then the log forgets the steps that are undone.
  void open();
  void close() { log_.reset(); }
  void sync() { log_->sync(); }

  void note(const std::string& text) const {
    if (hooks_.note) hooks_.note(text);
  }
  // Before open() the hook alone hears of it.
  void event(const char* what, const std::string& text);
  // Of every update; of those that are logged, too.
  void step(const TrainStatus& status);
  void log(TrainStatus status);
  void eval(const EvalStatus& status);
  void finish_epoch(int64_t epoch, double lr) { log_->finish_epoch(epoch, progress_.step, lr); }

 private:
  const TrainPlace& place_;
  const TrainHooks& hooks_;
  const Progress& progress_;
  bool tensorboard_;
  std::unique_ptr<RunLog> log_;
  double unlogged_s_ = 0, unlogged_wait_s_ = 0;  // since the last line of the log
};

}  // namespace vitrail
