// Variables of the environment that look like options and are not, so that a misspelt name does not pass in
// silence.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "launch/environment.h"

namespace vitrail::cli {

// Returns one line for each of `names` that begins with VITRAIL_ and belongs to no option of any command.
std::vector<std::string> environment_warnings(std::span<const std::string> names,
                                              std::span<const CommandSpec> commands);

}  // namespace vitrail::cli
