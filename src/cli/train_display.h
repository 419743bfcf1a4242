// The display of a training run: a bar on a terminal, one plain line every ten seconds elsewhere, evaluations
// and events in full, nothing with --quiet; with --json the metrics lines on stdout, otherwise stderr alone.
// A closed pipe does not end the run.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/console.h"
#include "telemetry/run_status.h"

namespace vitrail::cli {

// Returns "step 120/5,000 2.4 % | loss 1.823 | lr 3.0e-04 | 812 img/s | wait 1 % | mem 1.20 GiB | ETA 12:03";
// unknown parts are left out.
std::string format_train_line(const TrainStatus& status);
// Returns the same behind a bar, in at most `width` cells: the last parts are dropped first, then the bar.
std::string format_train_bar(const TrainStatus& status, int width);
// Returns "eval at step 500, epoch 2: top-1 81.23 %, top-5 98.10 %, loss 0.612 | 10,000 images in 12.3 s |
// best so far".
std::string format_eval_line(const EvalStatus& status);
// Formats the time left in hours, minutes and seconds: "0:07", "12:03", "3:05:10", "2 d 03:10:00".
std::string format_clock(double seconds);

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
