// What the environment says: where bundled models lie, and variables that look like options and are none: a
// misspelt name must not pass in silence.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"

namespace vitrail::cli {

// The places of io/find_model.h for this process, VITRAIL_MODELS among them.
std::vector<std::filesystem::path> model_places();

// Where the user's configuration lies: $XDG_CONFIG_HOME or ~/.config; empty without either.
std::string config_home();

// Of this process.
std::vector<std::string> environment_names();

// One line for each of `names` that begins with VITRAIL_ and belongs to no option of any command.
std::vector<std::string> environment_warnings(std::span<const std::string> names,
                                              std::span<const CommandSpec> commands);

}  // namespace vitrail::cli
