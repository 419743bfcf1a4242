// Where packed weights are kept from one start to the next, and the option that asks for it.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace vitrail::cli {

// --cache.
OptionSpec cache_option();

// Beside the model, then the user's cache: `xdg_cache` (XDG_CACHE_HOME) or `home`/.cache; either may be
// empty.
std::vector<std::string> cache_places(const std::string& model_path, const std::string& xdg_cache,
                                      const std::string& home);
// The same from this process's environment; none without --cache.
std::vector<std::string> cache_places(const Options& options, const std::string& model_path);

}  // namespace vitrail::cli
