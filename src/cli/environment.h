// The environment of the process: where bundled models lie, and variables that look like options and are not,
// so that a misspelt name does not pass in silence.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"

namespace vitrail::cli {

// Returns the places of io/find_model.h for this process, VITRAIL_MODELS among them.
std::vector<std::filesystem::path> model_places();

// Returns the folder of the user's configuration, $XDG_CONFIG_HOME or ~/.config; empty without either.
std::string config_home();

// Returns the value of a variable of the environment, or null.
const char* environment_variable(const char* name);

// Lets rank threads of this process that share a GPU have queues of their own on it: with the driver's usual
// 8, a collective of one rank could stand behind work that waits for another's. Called before the GPU is
// used.
void share_gpu_queues(int ranks);

// Returns the names of this process's environment variables.
std::vector<std::string> environment_names();

// Returns one line for each of `names` that begins with VITRAIL_ and belongs to no option of any command.
std::vector<std::string> environment_warnings(std::span<const std::string> names,
                                              std::span<const CommandSpec> commands);

}  // namespace vitrail::cli
