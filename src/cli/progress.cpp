#include "cli/progress.h"

#include <algorithm>

#include "base/error.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
constexpr double kBarEvery = 0.1, kLineEvery = 10;  // seconds
constexpr int kBarCells = 24;

double share_of(const ProgressState& s) {
  return s.total > 0 ? std::min(1.0, static_cast<double>(s.done) / static_cast<double>(s.total)) : 0;
}

std::string count_text(const ProgressState& s) {
  if (s.total <= 0) return format_integer(s.done) + " " + s.unit;
  return strf("%s/%s %s", format_integer(s.done).c_str(), format_integer(s.total).c_str(), s.unit.c_str());
}

// Returns the rate and the time left; neither is known before the first step is done.
std::string pace_text(const ProgressState& s) {
  if (s.done <= 0 || s.seconds <= 0) return "";
  const double rate = static_cast<double>(s.done) / s.seconds;
  std::string text = strf("  %s %s/s", format_si(rate).c_str(), s.unit.c_str());
  if (s.total > s.done) text += "  ETA " + format_seconds(static_cast<double>(s.total - s.done) / rate);
  return text;
}

std::string note_text(const ProgressState& s) {
  return s.note.empty() ? "" : "  " + s.note;
}
}  // namespace

std::string format_progress_line(const ProgressState& s) {
  const std::string percent = s.total > 0 ? strf(" (%.0f %%)", share_of(s) * 100) : "";
  return s.title + ": " + count_text(s) + percent + pace_text(s) + note_text(s);
}

std::string format_progress_bar(const ProgressState& s, int width) {
  const std::string percent = s.total > 0 ? strf("%3.0f %%  ", share_of(s) * 100) : "";
  const std::string bar = s.total > 0 ? "▕" + format_bar(share_of(s), kBarCells) + "▏ " : "";
  const std::string rest = percent + count_text(s) + pace_text(s) + note_text(s);
  const auto cells = static_cast<size_t>(std::max(width, 1));
  for (const std::string& line : {s.title + " " + bar + rest, s.title + " " + rest, percent + count_text(s)})
    if (display_width(line) <= cells) return line;
  return percent.substr(0, cells);
}

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
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::advance(int64_t steps, std::string note) {
  state_.done += steps;
  state_.note = std::move(note);
  if (finished_) return;
  const double since = std::chrono::duration<double>(Clock::now() - shown_).count();
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
