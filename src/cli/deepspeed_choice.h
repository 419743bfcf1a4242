// --deepspeed: a training config out of the options and of a DeepSpeed JSON, which stands above --config and
// below everything on the command line.
#pragma once

#include "cli/console.h"
#include "cli/options.h"
#include "train/deepspeed/deepspeed.h"

namespace vitrail::cli {

OptionSpec deepspeed_option();

// Returns whether the command line itself speaks of an option or a setting: by --set, by a flag that stands
// for it, or in --mesh.
bool given_on_command_line(const Options& options, const std::string& key);

// Returns `config` as it is where no file is given. `ranks` as in DeepSpeedBase.
DeepSpeedReading with_deepspeed(const Options& options, TrainConfig config, int ranks);

void say_notes(const DeepSpeedReading& reading, const Options& options, Console& console);

}  // namespace vitrail::cli
