// Resolves `-m MODEL`: a folder, a file, or the name of a bundled model, and the places of bundled models.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

// Returns the folders that may hold bundled models, in order: `environment` (the value of VITRAIL_MODELS, may
// be empty), then beside the program as installed, then as built in the source tree.
std::vector<std::filesystem::path> model_places_for(const std::string& environment,
                                                    const std::filesystem::path& program);

struct BundledModel {
  std::string name;
  std::filesystem::path path;
};
// Lists every model found there, by name; the first place wins when a name occurs twice.
std::vector<BundledModel> bundled_models(const std::vector<std::filesystem::path>& places);

// Whether training wrote this folder: it is no model itself, but holds one in best/ or in checkpoints/latest.
bool is_run_folder(const std::string& path);

// Returns the path of a model; for a run's folder, that of its best model, else of its latest checkpoint.
// Throws Error(kData) listing where it searched and which bundled models there are.
std::string find_model(const std::string& model, const std::vector<std::filesystem::path>& places);

}  // namespace vitrail
