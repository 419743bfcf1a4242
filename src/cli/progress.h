// The progress of a long command: a bar with rate and time left on a terminal, one plain line every ten
// seconds elsewhere, nothing with --quiet or for a command that ends at once. Writes to stderr only.
#pragma once

#include <cstdint>
#include <string>

#include "base/timing.h"
#include "cli/console.h"
#include "telemetry/progress_text.h"

namespace vitrail::cli {

inline constexpr double kBarEvery = 0.1, kLineEvery = 10;  // seconds between two views of a bar, of a line

class Progress {
 public:
  Progress(Console& console, std::string title, std::string unit, int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(int64_t steps, std::string note = {});
  // Clears the bar; further calls show nothing. The destructor does the same.
  void finish();
  double seconds() const;

 private:
  void show();

  Console& console_;
  ProgressState state_;
  Clock::time_point start_, shown_;
  bool bar_, finished_;
};

}  // namespace vitrail::cli
