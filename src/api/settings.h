// What the options of the public API mean to the engine, and where models that came with Vitrail lie. It must
// read no environment.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/engine.h"
#include "train/train_config.h"
#include "vitrail/model.h"

namespace vitrail {

// Error(kUsage) for options that cannot be.
EngineOptions engine_options(const ModelOptions& options);
OpenOptions open_options(const ModelOptions& options);

// The config of a path or of JSON text; models in it may be bundled ones.
TrainConfig training_config(const std::string& config);

// Error(kUsage) for a number of threads that cannot be.
void require_threads(int threads);

// The program as seen by io/shipped.h: the one that this library was installed or built with.
std::filesystem::path installed_program();

// A folder, a file, or the name of a bundled model.
std::string find_model(const std::string& path_or_name);

}  // namespace vitrail
