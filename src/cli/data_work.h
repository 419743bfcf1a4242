// Arguments that the data commands share, and the progress bar of a walk through a dataset.
#pragma once

#include <memory>
#include <string>

#include "base/stop.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "data/dataset.h"
#include "data/walk.h"

namespace vitrail::cli {

PositionalSpec data_positional();
OptionSpec part_option();

// Opens the part of DATA that --part names.
std::unique_ptr<Dataset> open_chosen_data(const Options& options);
// Returns --threads, or the number of cores.
int data_threads(const Options& options);

// A progress bar of a walk through a dataset, which a signal ends.
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
