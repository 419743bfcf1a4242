#include "io/find_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/run_files.h"
#include "base/values.h"
#include "models/zoo.h"

namespace vitrail {

namespace fs = std::filesystem;

fs::path this_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

std::vector<fs::path> shipped_places(const std::string& name, const std::string& in_source,
                                     const fs::path& program) {
  const fs::path folder = program.parent_path();
  std::vector<fs::path> places;
  if (!folder.is_absolute()) return places;
  if (folder.filename() == "bin") places.push_back(folder.parent_path() / "share/vitrail" / name);
  std::error_code ignored;
  if (fs::exists(folder / "CMakeCache.txt", ignored))
    places.push_back((folder / "../.." / in_source).lexically_normal());
  return places;
}

namespace {
constexpr const char* kWeightEndings[] = {".safetensors", ".npz", ".pth", ".bin", ".pt"};

bool is_weight_file(const fs::path& path) {
  const auto has = [&](const char* ending) { return path.extension() == ending; };
  std::error_code ignored;
  return std::any_of(std::begin(kWeightEndings), std::end(kWeightEndings), has) &&
         fs::is_regular_file(path, ignored);
}

bool is_model_folder(const fs::path& path) {
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (is_weight_file(it->path())) return true;
  return false;
}

// Returns the model of a run's folder; empty when it is not a run's folder.
fs::path model_of_run(const fs::path& folder) {
  if (is_model_folder(folder)) return {};
  for (const char* place : {RunFiles::kBest, RunFiles::kLatestCheckpoint})
    if (is_model_folder(folder / place)) return folder / place;
  return {};
}

// Returns whether it is an architecture's name, with or without a timm tag after a dot.
bool is_architecture(const std::string& name) {
  const std::string plain = name.substr(0, name.find('.'));
  return std::any_of(zoo().begin(), zoo().end(), [&](auto& entry) { return entry.config.arch == plain; });
}
}  // namespace

std::vector<fs::path> model_places_for(const std::string& environment, const fs::path& program) {
  std::vector<fs::path> places = shipped_places("models", "models", program);
  if (!environment.empty()) places.insert(places.begin(), environment);
  return places;
}

std::vector<BundledModel> bundled_models(const std::vector<fs::path>& places) {
  std::vector<BundledModel> models;
  for (const fs::path& place : places) {
    std::error_code error;
    for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      const bool known = std::any_of(models.begin(), models.end(), [&](auto& m) { return m.name == name; });
      if (!known && (is_weight_file(it->path()) || is_model_folder(it->path())))
        models.push_back({name, it->path()});
    }
  }
  std::sort(models.begin(), models.end(), [](auto& a, auto& b) { return a.name < b.name; });
  return models;
}

bool is_run_folder(const std::string& path) {
  return !model_of_run(path).empty();
}

namespace {
// Returns the path of a model; empty: there is none.
std::string present_model(const std::string& model, const std::vector<fs::path>& places, ModelSource source) {
  std::error_code ignored;
  if (source == ModelSource::kAny && !model.empty() && fs::exists(model, ignored))
    return is_run_folder(model) ? model_of_run(model).string() : model;
  for (const BundledModel& bundled : bundled_models(places))
    if (bundled.name == model) return bundled.path.string();
  return {};
}
}  // namespace

bool model_is_there(const std::string& model, const std::vector<fs::path>& places, ModelSource source) {
  return !present_model(model, places, source).empty();
}

std::string find_model(const std::string& model, const std::vector<fs::path>& places, ModelSource source) {
  std::string path = present_model(model, places, source);
  if (!path.empty()) return path;
  if (is_architecture(model))
    throw Error(ErrorKind::kData,
                strf("%s is an architecture: there are no weights of that name here", model.c_str()),
                "give a weight file or a model folder, as in: -m model.safetensors --arch " + model);
  std::vector<std::string> names;
  for (const BundledModel& bundled : bundled_models(places)) names.push_back(bundled.name);
  std::string looked = strf(
      "no model '%s': there is no such file or folder, nor a bundled model of that name in", model.c_str());
  for (const fs::path& place : places) looked += "\n" + place.string();
  const std::string known = names.empty()
                                ? "give a folder or a file; no bundled models were found (VITRAIL_MODELS "
                                  "names the folder that holds them)"
                                : "a folder, a file, or one of the bundled models: " + join(names, ", ");
  throw Error(ErrorKind::kData, looked, did_you_mean(model, names, "", known));
}

}  // namespace vitrail
