// What to try when a setting is refused: its default, its choices, what it is for. Every refusal of a config
// that brings no advice of its own gets it here, from the table that declares the settings.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"

namespace vitrail::cli {

// "optim.lr=0.001, its default (peak learning rate)", "--batch 1, its default (images at a time)"; for a
// value that was given.
std::string advice_for(const OptionSpec& spec);

// The same error; one about settings (kConfig) that does not say what to try, with the advice for the setting
// that it speaks of: one that was given, by its whole name, by the name it stands for or by the last part of
// its name; or else one that has a default.
Error with_advice(const Error& error, const std::vector<OptionSpec>& specs, const Options& options);

}  // namespace vitrail::cli
