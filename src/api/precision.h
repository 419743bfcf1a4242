// A device name and a type name translated together: the backend, the GPU, and the types of the computation.
// Knows no command line: `dash` stands before the names of settings in messages.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"

namespace vitrail {

// The types that some backend computes models in, by name: 32 bits, 16, then those of GEMMs alone.
const std::vector<std::string>& model_types();

// Throws Error(kUsage) when the device does not compute in the type.
void check_precision(const std::string& dtype, const std::string& device, const std::string& backend,
                     const char* dash = "");

// Sets the types of an engine: on a CPU those of the GEMMs, on a GPU those of the activations, too. It reads
// engine.backend. Throws Error(kUsage) where the device does not compute in the type.
void set_precision(const std::string& dtype, const std::string& device, EngineOptions& engine,
                   const char* dash = "");

}  // namespace vitrail
