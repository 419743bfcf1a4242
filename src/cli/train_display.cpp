#include "cli/train_display.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
constexpr double kBarEvery = 0.1, kLineEvery = 10;  // seconds
constexpr int kBarCells = 16;

double share_of(const TrainStatus& s) {
  return s.total_steps > 0 ? std::min(1.0, static_cast<double>(s.step) / static_cast<double>(s.total_steps))
                           : 0;
}

std::string step_text(const TrainStatus& s) {
  if (s.total_steps <= 0) return "step " + format_integer(s.step);
  return strf("step %s/%s %.1f %%", format_integer(s.step).c_str(), format_integer(s.total_steps).c_str(),
              100 * share_of(s));
}

std::string epoch_text(const TrainStatus& s) {
  return "epoch " + format_integer(std::min(s.epoch + 1, s.total_epochs)) + "/" +
         format_integer(s.total_epochs);
}

// A loss of NaN is shown; a number that was not measured is not.
std::vector<std::string> parts_of(const TrainStatus& s) {
  std::vector<std::string> parts = {step_text(s), "loss " + format_significant(s.loss)};
  const auto known = [](double value) { return !std::isnan(value); };
  if (s.total_epochs > 1) parts.push_back(epoch_text(s));
  if (known(s.lr)) parts.push_back(strf("lr %.1e", s.lr));
  if (known(s.images_per_second)) parts.push_back(format_si(s.images_per_second) + " img/s");
  if (const double wait = s.data_wait_share(); known(wait)) parts.push_back(strf("wait %.0f %%", 100 * wait));
  if (s.memory_bytes > 0) parts.push_back("mem " + format_bytes(s.memory_bytes));
  if (s.skipped > 0) parts.push_back(format_integer(s.skipped) + " skipped");
  if (known(s.eta_s)) parts.push_back("ETA " + format_clock(s.eta_s));
  return parts;
}

std::string joined(const std::vector<std::string>& parts, size_t count) {
  std::string text;
  for (size_t i = 0; i < std::min(count, parts.size()); ++i) text += (i ? " | " : "") + parts[i];
  return text;
}
}  // namespace

std::string format_clock(double seconds) {
  if (!(seconds >= 0 && seconds < 1e10)) return "?";
  const auto total = std::llround(seconds);
  const long long days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60,
                  rest = total % 60;
  if (days > 0) return strf("%lld d %02lld:%02lld:%02lld", days, hours, minutes, rest);
  if (hours > 0) return strf("%lld:%02lld:%02lld", hours, minutes, rest);
  return strf("%lld:%02lld", minutes, rest);
}

std::string format_train_line(const TrainStatus& status) {
  const std::vector<std::string> parts = parts_of(status);
  return joined(parts, parts.size());
}

std::string format_train_bar(const TrainStatus& status, int width) {
  const std::vector<std::string> parts = parts_of(status);
  const auto cells = static_cast<size_t>(std::max(width, 1));
  const std::string bar = status.total_steps > 0 ? "▕" + format_bar(share_of(status), kBarCells) + "▏ " : "";
  // The time left matters most after step and loss, so it moves forward when parts have to be dropped.
  std::vector<std::string> ranked = parts;
  if (ranked.size() > 3 && ranked.back().starts_with("ETA"))
    std::rotate(ranked.begin() + 2, ranked.end() - 1, ranked.end());
  std::vector<std::string> lines = {bar + joined(parts, parts.size())};
  for (size_t count = parts.size() - 1; count >= 2; --count) lines.push_back(bar + joined(ranked, count));
  lines.push_back(joined(parts, 2));
  lines.push_back(parts[0]);
  for (const std::string& line : lines)
    if (display_width(line) <= cells) return line;
  return parts[0].substr(0, cells);
}

std::string format_eval_line(const EvalStatus& s) {
  std::string text =
      "eval at step " + format_integer(s.step) + ", epoch " + format_integer(s.epoch + 1) + ":";
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) text += strf(" %s %s,", name, format_percent(*value).c_str());
  };
  add("top-1", s.top1);
  add("top-5", s.top5);
  add("mAP", s.mean_ap);
  add("F1", s.macro_f1);
  text += " loss " + format_significant(s.loss) + " | " + format_count(s.count, "image");
  if (!std::isnan(s.seconds)) text += " in " + format_seconds(s.seconds);
  if (s.weights != "model") text += " | " + s.weights + " weights";
  return s.best ? text + " | best so far" : text;
}

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
