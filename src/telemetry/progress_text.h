// Tells how far a run or command is, as one line: plain for logs, with a bar for a terminal. Writes nothing.
#pragma once

#include <cstdint>
#include <string>

#include "telemetry/run_status.h"

namespace vitrail {

struct ProgressState {
  std::string title;  // "predict"
  std::string unit;   // "images"
  int64_t done = 0;
  int64_t total = 0;   // 0: unknown
  double seconds = 0;  // since the start
  std::string note;    // "loss 0.412"
};

// Return one line of at most `width` cells for a terminal, and one plain line for logs.
std::string format_progress_bar(const ProgressState& state, int width);
std::string format_progress_line(const ProgressState& state);

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

}  // namespace vitrail
