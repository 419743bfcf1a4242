#include "backend/cuda/plugin.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"

namespace vitrail::cuda {

namespace {

constexpr const char* kLibrary = "libvitrail_cuda.so";

// The folder of the program or library this code is part of.
std::filesystem::path own_folder() {
  Dl_info info{};
  std::error_code failed;
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || !info.dli_fname) return {};
  auto path = std::filesystem::canonical(info.dli_fname, failed);
  if (failed) path = std::filesystem::canonical("/proc/self/exe", failed);
  return path.parent_path();
}

struct Plugin {
  const Api* api = nullptr;
  std::string path, problem;

  Plugin() {
    const std::filesystem::path here = own_folder();
    for (const char* folder : {".", "vitrail", "../lib", "../lib/vitrail"}) {
      const std::filesystem::path candidate = (here / folder / kLibrary).lexically_normal();
      std::error_code failed;
      if (!std::filesystem::exists(candidate, failed)) continue;
      open(candidate.string());
      return;
    }
    problem = strf("%s is not beside the program: this build has no CUDA", kLibrary);
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
