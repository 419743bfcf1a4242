#include "cli/data_work.h"

#include <algorithm>

#include "measure/host.h"

namespace vitrail::cli {

PositionalSpec data_positional() {
  return {"DATA", "folder:DIR, cifar10:DIR, cifar100:DIR, idx:DIR, tar:GLOB, packed:FILE or synthetic:SHAPE",
          1, 1};
}

OptionSpec part_option() {
  return {.name = "part",
          .help = "which part of the data",
          .metavar = "NAME",
          .fallback = "all",
          .choices = {"train", "val", "all"}};
}

std::unique_ptr<Dataset> open_chosen_data(const Options& options) {
  const std::string& part = options.text("part");
  return open_dataset(options.positional(0), part == "train" ? Part::kTrain
                                             : part == "val" ? Part::kVal
                                                             : Part::kAll);
}

int data_threads(const Options& options) {
  const int64_t asked = options.integer("threads");
  return static_cast<int>(asked > 0 ? asked : std::max(1, read_machine().usable));
}

WalkHooks WorkProgress::hooks() {
  return {
      .check = [this](int64_t done,
                      int64_t total) { stop_.check(static_cast<size_t>(done), static_cast<size_t>(total)); },
      .advance = [this](int64_t count) { progress_.advance(count); }};
}

}  // namespace vitrail::cli
