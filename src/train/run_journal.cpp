#include "train/run_journal.h"

#include <utility>

#include "base/timing.h"

namespace vitrail {

void RunJournal::open() {
  if (!writes_) return;
  RunLogOptions options;
  if (place_.resume != ResumeMode::kFresh || log_) options.resume_step = progress_.step;
  options.eval_due = !log_ && progress_.eval_due;  // a run that goes back has had it
  options.tensorboard = tensorboard_;
  options.trouble = [this](const Error& error) { note(error.message()); };
  log_.reset();
  log_ = std::make_unique<RunLog>(place_.folder, options);
}

void RunJournal::event(const char* what, const std::string& text) {
  const RunEvent happened{what, text, progress_.step, unix_seconds()};
  if (log_) log_->event(happened);
  if (hooks_.event) hooks_.event(happened);
}

void RunJournal::finding(const char* what, const std::string& text) {
  if (text.empty()) return;
  if (progress_.step == 0)
    event(what, text);
  else
    note(text);
}

void RunJournal::step(const TrainStatus& status) {
  unlogged_s_ += status.interval_s;
  unlogged_wait_s_ += status.data_wait_s;
  if (hooks_.step) hooks_.step(status);
}

void RunJournal::log(TrainStatus status) {
  status.interval_s = std::exchange(unlogged_s_, 0);
  status.data_wait_s = std::exchange(unlogged_wait_s_, 0);
  if (log_) log_->train(status);
  if (hooks_.logged) hooks_.logged(status);
}

void RunJournal::eval(const EvalStatus& status) {
  if (log_) log_->eval(status);
  if (hooks_.eval) hooks_.eval(status);
}

void RunJournal::timing(const TimingStatus& status) {
  if (log_) log_->timing(status);
  if (hooks_.timing) hooks_.timing(status);
}

void RunJournal::start(const StartStatus& status) {
  if (log_) log_->start(status);
  if (hooks_.start) hooks_.start(status);
}

}  // namespace vitrail
