#include "base/plugin_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "base/error.h"

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

// Returns where a plugin may lie relative to `folder`, that of the program or library, as built or as
// installed.
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

Plugin<void> open_plugin(const PluginNames& names) {
  Plugin<void> plugin;
  const std::string path = find_plugin(names.file);
  if (path.empty()) {
    plugin.problem =
        strf("%s is not beside the program: this build has no %s%s", names.file, names.brings, names.absent);
    return plugin;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    plugin.problem = strf("%s cannot be opened: %s; %s", path.c_str(), dlerror(), names.broken);
    return plugin;
  }
  plugin.path = path;
  const auto get = reinterpret_cast<const void* (*)()>(dlsym(library, names.symbol));
  if (get) plugin.api = get();
  return plugin;
}

void open_libraries(const std::filesystem::path& folder) {
  std::vector<std::string> left;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.is_regular_file()) left.push_back(entry.path().string());
  const auto opens = [](const std::string& file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); };
  while (std::erase_if(left, opens) > 0) continue;
}

}  // namespace vitrail
