#include "backend/cuda/plugin.h"

#include "base/error.h"
#include "base/plugin_library.h"

namespace vitrail::cuda {

namespace {

constexpr const char* kLibrary = "libvitrail_cuda.so";

struct Plugin {
  const Api* api = nullptr;
  std::string path, problem;

  Plugin() {
    const PluginLibrary library = open_plugin(kLibrary, kApiSymbol);
    path = library.path;
    if (path.empty())
      problem = strf("%s is not beside the program: this build has no CUDA", kLibrary);
    else if (!library.problem.empty())
      problem = strf("%s cannot be opened: %s; CUDA 13 brings what it needs (cuBLASLt)", path.c_str(),
                     library.problem.c_str());
    else
      ask(reinterpret_cast<GetApi>(library.symbol));
    if (!library.problem.empty()) path.clear();
  }

 private:
  void ask(GetApi get) {
    const Api* found = get ? get() : nullptr;
    if (!found || found->version != VITRAIL_CUDA_API) {
      problem = path + " belongs to another build of Vitrail";
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
