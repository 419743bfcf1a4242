// The display of a training run: a bar on a terminal, one plain line every ten seconds elsewhere, evaluations
// and events in full, nothing with --quiet; with --json the metrics lines on stdout, otherwise stderr alone.
// A closed pipe does not end the run.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "cli/console.h"
#include "telemetry/progress_text.h"

namespace vitrail::cli {

class TrainDisplay {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TrainDisplay(Console& console) : console_(console) {}
  ~TrainDisplay();
  TrainDisplay(const TrainDisplay&) = delete;
  TrainDisplay& operator=(const TrainDisplay&) = delete;

  // Called after every step; shows it when the display is due.
  void step(const TrainStatus& status, Clock::time_point now = Clock::now());
  void eval(const EvalStatus& status);
  void event(const RunEvent& event);
  // Prints a line of metrics.jsonl, for --json.
  void logged(const nlohmann::ordered_json& line);
  // Shows the last step if it was not shown yet and clears the bar. The destructor does the same.
  void finish();

 private:
  void show(const TrainStatus& status);

  Console& console_;
  std::optional<TrainStatus> last_;
  std::optional<Clock::time_point> shown_at_;
  bool last_shown_ = true, readers_gone_ = false;
};

}  // namespace vitrail::cli
