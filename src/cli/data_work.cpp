#include "cli/data_work.h"

#include "base/text.h"
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

std::string problem_text(const Error& error, const std::string& name) {
  std::string text = error.message();
  for (const std::string& place : error.context())
    if (place != shown(name)) text = place + ": " + text;
  // A path in a message may hold the line end that is the trouble.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return text;
}

}  // namespace vitrail::cli
