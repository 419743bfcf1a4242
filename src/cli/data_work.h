// What the data commands share: their arguments, and the progress of going through a dataset.
#pragma once

#include <memory>
#include <string>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "data/dataset.h"
#include "data/walk.h"

namespace vitrail::cli {

PositionalSpec data_positional();
OptionSpec part_option();

// The part of DATA that --part names.
std::unique_ptr<Dataset> open_chosen_data(const Options& options);
// --threads, or every core.
int data_threads(const Options& options);

// A progress bar of such work, which a signal ends.
class WorkProgress {
 public:
  WorkProgress(Console& console, const char* title, int64_t total)
      : progress_(console, title, "images", total) {}
  WalkHooks hooks();
  void finish() { progress_.finish(); }

 private:
  SignalGuard stop_;
  Progress progress_;
};

}  // namespace vitrail::cli
