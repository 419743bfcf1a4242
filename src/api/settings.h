// The options of the public API translated for the engine, and the places of models shipped with Vitrail.
// Reads no environment.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/engine.h"
#include "train/train_config.h"
#include "train/world.h"
#include "vitrail/model.h"
#include "vitrail/train.h"

namespace vitrail {

// Throws Error(kUsage) for invalid options.
EngineOptions engine_options(const ModelOptions& options);
OpenOptions open_options(const ModelOptions& options);

// Reads a config from a path or from JSON text; models in it may be bundled ones. Former names of its values
// are added to `notes`.
TrainConfig training_config(const std::string& config, std::vector<std::string>* notes = nullptr);

// Returns the ranks of a run, threads of this process, for its config with all ranks; `options` must outlive
// them.
LocalRanks local_ranks(const TrainOptions& options, const TrainConfig& whole);

// Throws Error(kUsage) for an invalid number of threads, or of ranks as threads of a process.
void require_threads(int threads);
void require_ranks(int ranks);

// Returns the path that shipped_places() of io/find_model.h starts from: the program that this library was
// installed or built with.
std::filesystem::path installed_program();

// Returns the path of a model: a folder, a file, or the name of a bundled model.
std::string find_model(const std::string& path_or_name);

}  // namespace vitrail
