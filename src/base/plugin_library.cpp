#include "base/plugin_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace vitrail {

namespace {

// The folders of the program, and of the library that this code may be part of. For the program itself dladdr
// gives the name it was started by, which need not say where it is stored: only an absolute path counts.
std::vector<std::filesystem::path> own_folders() {
  std::vector<std::filesystem::path> folders;
  const auto add = [&](const char* file) {
    std::error_code failed;
    const auto path = std::filesystem::canonical(file, failed);
    if (!failed) folders.push_back(path.parent_path());
  };
  add("/proc/self/exe");
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(&own_folders), &info) != 0 && info.dli_fname;
  if (known && info.dli_fname[0] == '/') add(info.dli_fname);
  return folders;
}

// Where a plugin may lie relative to `folder`, that of the program or library, as built or as installed.
std::vector<std::filesystem::path> places_for(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> places = {folder, folder / "vitrail"};
  if (folder.filename() == "bin")
    for (const char* library : {"lib", "lib/vitrail"}) places.push_back(folder.parent_path() / library);
  return places;
}

std::string find_plugin(const char* file) {
  std::error_code failed;
  for (const std::filesystem::path& folder : own_folders())
    for (const std::filesystem::path& place : places_for(folder))
      if (std::filesystem::exists(place / file, failed)) return (place / file).string();
  return {};
}

}  // namespace

PluginLibrary open_plugin(const char* file, const char* symbol) {
  PluginLibrary plugin{.path = find_plugin(file)};
  if (plugin.path.empty()) return plugin;
  if (void* library = dlopen(plugin.path.c_str(), RTLD_NOW | RTLD_LOCAL))
    plugin.symbol = dlsym(library, symbol);
  else
    plugin.problem = dlerror();
  return plugin;
}

}  // namespace vitrail
