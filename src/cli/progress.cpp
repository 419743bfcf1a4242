#include "cli/progress.h"

namespace vitrail::cli {

Progress::Progress(Console& console, std::string title, std::string unit, int64_t total)
    : console_(console), start_(Clock::now()), shown_(start_) {
  state_.title = std::move(title);
  state_.unit = std::move(unit);
  state_.total = total;
  bar_ = console.settings().err_terminal;
  finished_ = console.settings().quiet;
}

Progress::~Progress() {
  finish();
}

double Progress::seconds() const {
  return seconds_since(start_);
}

void Progress::advance(int64_t steps, std::string note) {
  state_.done += steps;
  state_.note = std::move(note);
  if (finished_) return;
  const double since = seconds_since(shown_);
  if (since < (bar_ ? kBarEvery : kLineEvery)) return;
  state_.seconds = seconds();
  shown_ = Clock::now();
  show();
}

void Progress::show() {
  if (bar_)
    console_.show_bar(format_progress_bar(state_, console_.settings().width - 1));
  else
    console_.say(format_progress_line(state_));
}

void Progress::finish() {
  if (!finished_) console_.clear_bar();
  finished_ = true;
}

}  // namespace vitrail::cli
