#include "cli/train_display.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/progress.h"

namespace vitrail::cli {

TrainDisplay::~TrainDisplay() {
  finish();
}

void TrainDisplay::step(const TrainStatus& status, Clock::time_point now) {
  last_ = status;
  last_shown_ = false;
  const double wait = console_.settings().err_terminal ? kBarEvery : kLineEvery;
  if (shown_at_ && std::chrono::duration<double>(now - *shown_at_).count() < wait) return;
  shown_at_ = now;
  show(status);
}

void TrainDisplay::show(const TrainStatus& status) {
  const ConsoleSettings& settings = console_.settings();
  if (settings.quiet) return;
  if (settings.err_terminal) {
    console_.show_bar(format_train_bar(status, settings.width - 1));
  } else {
    console_.say(format_train_line(status));
    last_shown_ = true;
  }
}

void TrainDisplay::eval(const EvalStatus& status) {
  console_.say(format_eval_line(status));
}

void TrainDisplay::event(const RunEvent& event) {
  console_.say(shown(event.text.empty() ? event.what : event.text));
}

void TrainDisplay::logged(const nlohmann::ordered_json& line) {
  if (readers_gone_ || !console_.json()) return;
  std::string trouble;
  try {
    console_.print_json(line);
    console_.flush();
    return;
  } catch (const ClosedPipe&) {
    trouble = "nobody reads stdout any more";
  } catch (const Error& error) {
    trouble = error.message();
  }
  readers_gone_ = true;
  console_.say(trouble + "; training goes on without it");
}

void TrainDisplay::finish() {
  console_.clear_bar();
  if (last_ && !last_shown_) console_.say(format_train_line(*last_));
  last_shown_ = true;
}

}  // namespace vitrail::cli
