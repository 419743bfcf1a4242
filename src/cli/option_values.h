// The values an option may take: reading them and refusing the others with the nearest choice. Used by the
// option registry only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"

namespace vitrail::cli {

std::optional<double> parse_number(const std::string& text);
std::optional<int64_t> parse_integer(const std::string& text);
std::optional<bool> parse_bool(const std::string& text);

// Throws unless `text` is a value this option takes; `place` is how the user wrote it.
void check_value(const OptionSpec& spec, const std::string& text, const std::string& place, ErrorKind kind);

// "did you mean --top-k?" or `otherwise` when nothing is near.
std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& valid,
                         const std::string& prefix, const std::string& otherwise);

std::string join(const std::vector<std::string>& words, const char* between);

}  // namespace vitrail::cli
