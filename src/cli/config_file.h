// A config file as a flat list of settings: JSON with comments, nested objects become dotted keys. Which
// keys exist is the option registry's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace vitrail::cli {

// Throws Error(kConfig): what is not JSON (with line and column), a key given twice, a file over 1 MiB.
std::vector<Setting> read_config_file(const std::string& path);
std::vector<Setting> parse_config(std::string_view text, const std::string& place);

}  // namespace vitrail::cli
