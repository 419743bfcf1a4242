// Where packed weights are kept from one start to the next, and the option that turns this on.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace vitrail::cli {

// The option --cache.
OptionSpec cache_option();

// Returns the folder of the model, then the user's cache: `xdg_cache` (XDG_CACHE_HOME) or `home`/.cache;
// either may be empty.
std::vector<std::string> cache_places(const std::string& model_path, const std::string& xdg_cache,
                                      const std::string& home);
// Returns the same for this process's environment; nothing without --cache.
std::vector<std::string> cache_places(const Options& options, const std::string& model_path);

}  // namespace vitrail::cli
