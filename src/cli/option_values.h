// The values of an option: a text that is none of them is refused with the nearest choice, or with what the
// table of options says of it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/values.h"
#include "cli/options.h"

namespace vitrail::cli {

// Throws unless `text` is a value of this option; `place` is how the user wrote it.
void check_value(const OptionSpec& spec, const std::string& text, const std::string& place, ErrorKind kind);

// Throws where a config file gives a number or a boolean in quotes.
void require_unquoted(const OptionSpec& spec, const Setting& setting, const std::string& place);

// Returns "optim.lr=0.001, its default (peak learning rate)" or "--batch 1, its default (images at a time)",
// for a value that was given.
std::string advice_for(const OptionSpec& spec);

// Returns the error with the advice of train/setting_advice.h for the options of a command.
Error with_advice(const Error& error, const std::vector<OptionSpec>& specs, const Options& options);

}  // namespace vitrail::cli
