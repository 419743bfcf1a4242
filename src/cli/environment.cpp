#include "cli/environment.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/values.h"
#include "dist/nccl_world.h"

namespace vitrail::cli {

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
