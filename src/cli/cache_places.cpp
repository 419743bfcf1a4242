#include "cli/cache_places.h"

#include <cstdlib>
#include <filesystem>

namespace vitrail::cli {

namespace fs = std::filesystem;

OptionSpec cache_option() {
  return {.name = "cache",
          .help = "keep the packed weights beside the model for the next start",
          .kind = ValueKind::kFlag};
}

std::vector<std::string> cache_places(const std::string& model_path, const std::string& xdg_cache,
                                      const std::string& home) {
  std::error_code ignored;
  const fs::path model(model_path);
  const fs::path folder = fs::is_directory(model, ignored) ? model : model.parent_path();
  std::vector<std::string> places = {(folder / ".vitrail-cache").string()};
  // The XDG specification says that relative paths are ignored.
  if (fs::path(xdg_cache).is_absolute())
    places.push_back((fs::path(xdg_cache) / "vitrail").string());
  else if (fs::path(home).is_absolute())
    places.push_back((fs::path(home) / ".cache/vitrail").string());
  return places;
}

std::vector<std::string> cache_places(const Options& options, const std::string& model_path) {
  if (!options.flag("cache")) return {};
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  return cache_places(model_path, variable("XDG_CACHE_HOME"), variable("HOME"));
}

}  // namespace vitrail::cli
