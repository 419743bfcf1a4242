// Finds and opens the CUDA plugin library beside the program. Used by this backend's own files only.
#pragma once

#include <string>

#include "backend/cuda/api/api.h"

namespace vitrail::cuda {

// Why there is no plugin, or no driver; empty when CUDA can be used.
const std::string& why_unusable();
// Error(kDevice) when it cannot be.
const Api& api();
std::string plugin_path();  // where it was found; empty when it was not

}  // namespace vitrail::cuda
