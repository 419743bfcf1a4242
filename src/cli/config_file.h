// A config file as a flat list of settings: JSON with comments, in which nested objects become dotted keys.
// Knows no keys: the option registry checks them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace vitrail::cli {

// Throws Error(kConfig) for text that is not JSON (with line and column), a key given twice, or a file over 1
// MiB.
std::vector<Setting> read_config_file(const std::string& path);
std::vector<Setting> parse_config(std::string_view text, const std::string& place);

}  // namespace vitrail::cli
