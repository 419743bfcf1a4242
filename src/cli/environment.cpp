#include "cli/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/rank_session.h"
#include "dist/nccl_world.h"
#include "io/find_model.h"

namespace vitrail::cli {

std::vector<std::filesystem::path> model_places() {
  const char* models = std::getenv("VITRAIL_MODELS");
  return model_places_for(models ? models : "", this_program());
}

std::string config_home() {
  const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
  if (config && *config) return config;
  return home && *home ? (std::filesystem::path(home) / ".config").string() : "";
}

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

std::vector<std::string> environment_warnings(std::span<const std::string> names,
                                              std::span<const CommandSpec> commands) {
  std::vector<std::string> valid = {"VITRAIL_MODELS", kWatchVariable, kFaultVariable, kNcclVariable},
                           warnings;
  for (const CommandSpec& command : commands)
    for (const OptionSpec& spec : all_options(command)) {
      valid.push_back(environment_name(spec.name));
      if (!spec.former_name.empty()) valid.push_back(environment_name(spec.former_name));
    }
  for (const std::string& name : names) {
    if (!name.starts_with("VITRAIL_") || std::find(valid.begin(), valid.end(), name) != valid.end()) continue;
    warnings.push_back(
        strf("warning: nothing reads the environment variable %s; %s", shown(name).c_str(),
             did_you_mean(name, valid, "", "vitrail COMMAND --help lists the options").c_str()));
  }
  return warnings;
}

}  // namespace vitrail::cli
