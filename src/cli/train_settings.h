// The training config as settings of the command line: one declaration a field, from the config's own lists.
#pragma once

#include "cli/options.h"
#include "train/train_config.h"

namespace vitrail::cli {

std::vector<OptionSpec> train_settings();

// What was given over the defaults; --seed and --dtype stand for train.seed and train.dtype.
TrainConfig read_train_config(const Options& options);

}  // namespace vitrail::cli
