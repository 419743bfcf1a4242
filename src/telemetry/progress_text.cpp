#include "telemetry/progress_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "telemetry/format.h"

namespace vitrail {

namespace {
constexpr int kProgressCells = 24, kTrainCells = 16;  // of a bar

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

std::string format_progress_line(const ProgressState& s) {
  const std::string percent = s.total > 0 ? strf(" (%.0f %%)", share_of(s) * 100) : "";
  return s.title + ": " + count_text(s) + percent + pace_text(s) + note_text(s);
}

std::string format_progress_bar(const ProgressState& s, int width) {
  const std::string percent = s.total > 0 ? strf("%3.0f %%  ", share_of(s) * 100) : "";
  const std::string bar = s.total > 0 ? "▕" + format_bar(share_of(s), kProgressCells) + "▏ " : "";
  const std::string rest = percent + count_text(s) + pace_text(s) + note_text(s);
  const auto cells = static_cast<size_t>(std::max(width, 1));
  for (const std::string& line : {s.title + " " + bar + rest, s.title + " " + rest, percent + count_text(s)})
    if (display_width(line) <= cells) return line;
  return percent.substr(0, cells);
}

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
  const std::string bar =
      status.total_steps > 0 ? "▕" + format_bar(share_of(status), kTrainCells) + "▏ " : "";
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

}  // namespace vitrail
