// Finds and opens the CUDA plugin library beside the program, once. Private to the CUDA backend; knows no
// ops.
#pragma once

#include <string>

#include "backend/cuda/api/api.h"

namespace vitrail::cuda {

// Returns why there is no plugin or no driver; empty when CUDA can be used.
const std::string& why_unusable();
// The plugin's table of functions; throws Error(kDevice) when CUDA cannot be used.
const Api& api();
// Makes api() return this table instead, for tests of what is asked of it; null: the plugin's again.
void replace_api(const Api* table);
std::string plugin_path();  // where the plugin was found; empty when it was not

}  // namespace vitrail::cuda
