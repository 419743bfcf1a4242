// What the name of a device and the name of a type mean together: which backend and which GPU, and what is
// computed in what. It must know no command line: `dash` stands before the names of settings in messages.
#pragma once

#include <string>

#include "api/engine.h"

namespace vitrail {

// Error(kUsage) when the device does not compute in the type.
void check_precision(const std::string& dtype, const std::string& device, const std::string& backend,
                     const char* dash = "");

// What a type means on a device: on a CPU, what GEMMs compute in; on a GPU, activations too. It reads
// engine.backend. Error(kUsage) where the device does not compute so.
void set_precision(const std::string& dtype, const std::string& device, EngineOptions& engine,
                   const char* dash = "");

}  // namespace vitrail
