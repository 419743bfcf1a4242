// The training config and the dimensions of a model as command-line settings: one declaration a field, made
// from the configs' own lists of fields, so that none is missing.
#pragma once

#include <vector>

#include "cli/options.h"
#include "train/train_config.h"

namespace vitrail::cli {

std::vector<OptionSpec> train_settings();
// Returns the defaults overridden by the given settings; --seed and --dtype stand for train.seed and
// train.dtype.
TrainConfig read_train_config(const Options& options);

// Settings of an architecture: --set model.depth=24.
std::vector<OptionSpec> model_settings();
bool has_model_settings(const Options& options);
void apply_model_settings(const Options& options, VitConfig& config);

}  // namespace vitrail::cli
