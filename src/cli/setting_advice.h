// Says what to try when a setting is refused: its default, its choices, its purpose. An error of a config
// without a hint gets one here, from the table that declares the settings.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"

namespace vitrail::cli {

// Returns "optim.lr=0.001, its default (peak learning rate)" or "--batch 1, its default (images at a time)",
// for a value that was given.
std::string advice_for(const OptionSpec& spec);

// Returns the error with a hint added if it is about settings (kConfig) and has none. The hint is for the
// setting that the message names: a given one, by its full name, by the name it stands for or by the last
// part of its name; otherwise one that has a default.
Error with_advice(const Error& error, const std::vector<OptionSpec>& specs, const Options& options);

}  // namespace vitrail::cli
