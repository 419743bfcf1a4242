// How a training run looks while it goes on: a bar on a terminal, one plain line every ten seconds elsewhere,
// evaluations and events in full, nothing with --quiet; with --json the metrics lines on stdout. Talks to
// stderr otherwise. A reader that went away does not end the run.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/console.h"
#include "telemetry/run_status.h"

namespace vitrail::cli {

// "step 120/5,000 2.4 % | loss 1.823 | lr 3.0e-04 | 812 img/s | wait 1 % | mem 1.20 GiB | ETA 12:03"; what is
// not known is left out.
std::string format_train_line(const TrainStatus& status);
// The same behind a bar, in at most `width` cells: the last parts go first, then the bar.
std::string format_train_bar(const TrainStatus& status, int width);
// "eval at step 500, epoch 2: top-1 81.23 %, top-5 98.10 %, loss 0.612 | 10,000 images in 12.3 s | best so
// far"
std::string format_eval_line(const EvalStatus& status);
// Hours, minutes and seconds left: "0:07", "12:03", "3:05:10", "2 d 03:10:00".
std::string format_clock(double seconds);

class TrainDisplay {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TrainDisplay(Console& console) : console_(console) {}
  ~TrainDisplay();
  TrainDisplay(const TrainDisplay&) = delete;
  TrainDisplay& operator=(const TrainDisplay&) = delete;

  // After every step; shows it when it is time to.
  void step(const TrainStatus& status, Clock::time_point now = Clock::now());
  void eval(const EvalStatus& status);
  void event(const RunEvent& event);
  // A line of metrics.jsonl, for --json.
  void logged(const nlohmann::ordered_json& line);
  // Shows the last step if it was not shown yet and takes the bar away. The destructor does the same.
  void finish();

 private:
  void show(const TrainStatus& status);

  Console& console_;
  std::optional<TrainStatus> last_;
  std::optional<Clock::time_point> shown_at_;
  bool last_shown_ = true, readers_gone_ = false;
};

}  // namespace vitrail::cli
