// The training config and the dimensions of a model as settings of the command line: one declaration a field,
// from the configs' own lists, so that neither can forget one.
#pragma once

#include <vector>

#include "cli/options.h"
#include "train/train_config.h"

namespace vitrail::cli {

std::vector<OptionSpec> train_settings();
// What was given over the defaults; --seed and --dtype stand for train.seed and train.dtype.
TrainConfig read_train_config(const Options& options);

// --set model.depth=24, for an architecture.
std::vector<OptionSpec> model_settings();
bool has_model_settings(const Options& options);
void apply_model_settings(const Options& options, VitConfig& config);

}  // namespace vitrail::cli
