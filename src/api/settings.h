// The options of the public API translated for the engine, and the places of models shipped with Vitrail.
// Reads no environment.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/engine.h"
#include "train/train_config.h"
#include "vitrail/model.h"

namespace vitrail {

// Throws Error(kUsage) for invalid options.
EngineOptions engine_options(const ModelOptions& options);
OpenOptions open_options(const ModelOptions& options);

// Reads a config from a path or from JSON text; models in it may be bundled ones.
TrainConfig training_config(const std::string& config);

// Throws Error(kUsage) for an invalid number of threads.
void require_threads(int threads);

// Returns the path that io/shipped.h starts from: the program that this library was installed or built with.
std::filesystem::path installed_program();

// Returns the path of a model: a folder, a file, or the name of a bundled model.
std::string find_model(const std::string& path_or_name);

}  // namespace vitrail
