#include "launch/environment.h"

#include <unistd.h>

#include <cstdlib>

#include "io/find_model.h"

namespace vitrail {

const char* environment_variable(const char* name) {
  return std::getenv(name);
}

void share_gpu_queues(int ranks) {
  if (ranks > 1) ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    names.push_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::vector<std::filesystem::path> model_places() {
  const char* models = std::getenv("VITRAIL_MODELS");
  return model_places_for(models ? models : "", this_program());
}

std::string config_home() {
  const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
  if (config && *config) return config;
  return home && *home ? (std::filesystem::path(home) / ".config").string() : "";
}

}  // namespace vitrail
