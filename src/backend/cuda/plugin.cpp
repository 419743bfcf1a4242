#include "backend/cuda/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "base/error.h"

namespace vitrail::cuda {

namespace {

constexpr const char* kLibrary = "libvitrail_cuda.so";

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

// Where the plugin may lie relative to `folder`, that of the program or library, as built or as installed.
std::vector<std::filesystem::path> places_for(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> places = {folder, folder / "vitrail"};
  if (folder.filename() == "bin")
    for (const char* library : {"lib", "lib/vitrail"}) places.push_back(folder.parent_path() / library);
  return places;
}

std::string find_plugin() {
  std::error_code failed;
  for (const std::filesystem::path& folder : own_folders())
    for (const std::filesystem::path& place : places_for(folder))
      if (std::filesystem::exists(place / kLibrary, failed)) return (place / kLibrary).string();
  return {};
}

struct Plugin {
  const Api* api = nullptr;
  std::string path, problem;

  Plugin() {
    const std::string found = find_plugin();
    if (found.empty())
      problem = strf("%s is not beside the program: this build has no CUDA", kLibrary);
    else
      open(found);
  }

 private:
  void open(const std::string& candidate) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      problem = strf("%s cannot be opened: %s; CUDA 13 brings what it needs (cuBLASLt)", candidate.c_str(),
                     dlerror());
      return;
    }
    path = candidate;
    const auto get = reinterpret_cast<GetApi>(dlsym(library, kApiSymbol));
    const Api* found = get ? get() : nullptr;
    if (!found || found->version != VITRAIL_CUDA_API) {
      problem = candidate + " belongs to another build of Vitrail";
      return;
    }
    std::string why;
    if (found->session.count(why) < 1) problem = "no usable NVIDIA GPU: " + why;
    api = found;
  }
};

const Plugin& plugin() {
  static const Plugin found;
  return found;
}

}  // namespace

const std::string& why_unusable() {
  return plugin().problem;
}

const Api& api() {
  if (!plugin().problem.empty())
    throw Error(ErrorKind::kDevice, "CUDA cannot be used: " + plugin().problem,
                "--device cpu; vitrail doctor shows what this machine can do");
  return *plugin().api;
}

std::string plugin_path() {
  return plugin().path;
}

}  // namespace vitrail::cuda
