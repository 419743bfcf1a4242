// What `-m MODEL` means: a folder, a file, or the name of a bundled model, and where those are looked for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

// Folders that may hold bundled models, in order: `environment` (the value of VITRAIL_MODELS, may be empty),
// then beside the program as installed, then as built in the source tree.
std::vector<std::filesystem::path> model_places_for(const std::string& environment,
                                                    const std::filesystem::path& program);

struct BundledModel {
  std::string name;
  std::filesystem::path path;
};
// Every model found there, by name; the first place wins when a name occurs twice.
std::vector<BundledModel> bundled_models(const std::vector<std::filesystem::path>& places);

// Whether this is a folder that training wrote: no model itself, but with one in best/ or in
// checkpoints/latest.
bool is_run_folder(const std::string& path);

// The path of a model; of a run's folder, that of its best model, else of its latest checkpoint.
// Throws Error(kData) saying what was looked at and which bundled models there are.
std::string find_model(const std::string& model, const std::vector<std::filesystem::path>& places);

}  // namespace vitrail
