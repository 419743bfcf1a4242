// Finds where files that come with Vitrail may lie (models, device files, tables of kernels), and what
// `-m MODEL` means: a folder, a file, or the name of a bundled model. Knows nothing of what is in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

// Returns the path of this program, near which files that come with Vitrail lie.
std::filesystem::path this_program();

// Returns the folders in the order they are looked through: `name` of the share folder of the program as
// installed, `in_source` of the tree it was built in. Never what happens to lie where one stands.
std::vector<std::filesystem::path> shipped_places(const std::string& name, const std::string& in_source,
                                                  const std::filesystem::path& program = this_program());

// `-m MODEL` means a folder, a file, or the name of a bundled model, which is looked for in these places.

// Folders that may hold bundled models, in order: `environment` (the value of VITRAIL_MODELS, may be empty),
// then beside the program as installed, then as built in the source tree.
std::vector<std::filesystem::path> model_places_for(const std::string& environment,
                                                    const std::filesystem::path& program);

struct BundledModel {
  std::string name;
  std::filesystem::path path;
};
// Lists every model found there, by name; the first place wins when a name occurs twice.
std::vector<BundledModel> bundled_models(const std::vector<std::filesystem::path>& places);

// Returns whether training wrote this folder, which is no model, but has one in best/ or checkpoints/latest.
bool is_run_folder(const std::string& path);

// What a name may mean. A default name always means the bundled model, even if a file of that name lies in
// the current folder.
enum class ModelSource { kAny, kBundled };

// Returns whether find_model() would find one.
bool model_is_there(const std::string& model, const std::vector<std::filesystem::path>& places,
                    ModelSource source = ModelSource::kAny);

// Returns the path of a model; for a run's folder, that of its best model, else of its latest checkpoint.
// Throws Error(kData) listing where it searched and which bundled models there are.
std::string find_model(const std::string& model, const std::vector<std::filesystem::path>& places,
                       ModelSource source = ModelSource::kAny);

}  // namespace vitrail
