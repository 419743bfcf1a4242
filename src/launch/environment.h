// The environment of the process: where bundled models and the user's own files lie, and the variables by
// which `vitrail launch` and tests speak to its ranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

// The variable in which `vitrail launch` hands the address of its watch to its ranks.
inline constexpr const char* kWatchVariable = "VITRAIL_WATCH";
// Tests set it: "RANK:PHASE:STEP:kill|stop|absent[:MARKER]" makes a rank die there, once if a marker is
// given; "RANK:flip:STEP:NUMBER[:MARKER]" flips a bit of what it holds after that update, drawn by the
// number.
inline constexpr const char* kFaultVariable = "VITRAIL_TEST_FAULT";

// Returns the value of a variable of the environment, or null.
const char* environment_variable(const char* name);

// Lets rank threads of this process that share a GPU have queues of their own on it: with the driver's usual
// 8, a collective of one rank could stand behind work that waits for another's. Called before the GPU is
// used.
void share_gpu_queues(int ranks);

// Returns the names of this process's environment variables.
std::vector<std::string> environment_names();

// Returns the places of io/find_model.h for this process, VITRAIL_MODELS among them.
std::vector<std::filesystem::path> model_places();

// Returns the folder of the user's configuration, $XDG_CONFIG_HOME or ~/.config; empty without either.
std::string config_home();

}  // namespace vitrail
