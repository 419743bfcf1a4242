// The options that every command has.
#include "base/thread_pool.h"
#include "cli/options.h"

namespace vitrail::cli {

const std::vector<OptionSpec>& common_options() {
  static const std::vector<OptionSpec> options = {
      {.name = "json", .help = "data as JSON on stdout, nothing else there", .kind = ValueKind::kFlag},
      {.name = "config", .help = "read options from a JSON file (comments allowed)", .metavar = "FILE"},
      {.name = "set",
       .help = "set one config key; may be repeated",
       .metavar = "KEY=VALUE",
       .repeated = true},
      {.name = "seed",
       .help = "seed of everything random",
       .kind = ValueKind::kInteger,
       .metavar = "N",
       .fallback = "0",
       .least = 0,
       .most = 9.0e15},
      {.name = "threads",
       .help = "threads to compute with; 0 takes every core",
       .kind = ValueKind::kInteger,
       .metavar = "N",
       .letter = 't',
       .fallback = "0",
       .least = 0,
       .most = kMaxThreads},
      {.name = "device", .help = "cpu or cuda[:i]", .metavar = "DEVICE", .fallback = "cpu"},
      {.name = "dtype",
       .help = "element type to compute in",
       .metavar = "TYPE",
       .fallback = "f32",
       .choices = {"f32", "f16", "bf16"}},
      {.name = "kernels",
       .help = "tuned kernels: a FILE of bench tune, none, or auto, the one made for this machine",
       .metavar = "FILE",
       .fallback = "auto"},
      {.name = "quiet", .help = "no talk on stderr, errors only", .kind = ValueKind::kFlag, .letter = 'q'},
      {.name = "verbose", .help = "say more on stderr", .kind = ValueKind::kFlag, .letter = 'v'},
      {.name = "debug", .help = "say everything, and the kind of an error", .kind = ValueKind::kFlag},
      {.name = "help", .help = "show this page", .kind = ValueKind::kFlag, .letter = 'h'},
  };
  return options;
}

std::vector<OptionSpec> all_options(const CommandSpec& command) {
  std::vector<OptionSpec> all = command.options;
  for (const OptionSpec& common : common_options()) {
    bool replaced = false;
    for (const OptionSpec& own : command.options) replaced |= own.name == common.name;
    if (!replaced) all.push_back(common);
  }
  return all;
}

}  // namespace vitrail::cli
