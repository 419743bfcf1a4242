// Parsing of values written as text, and suggestions for unknown names.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace vitrail {

// Returns nothing unless the whole text is one value.
std::optional<double> parse_number(const std::string& text);
std::optional<int64_t> parse_integer(const std::string& text);
std::optional<bool> parse_bool(const std::string& text);

// Returns "did you mean --top-k?", or `otherwise` when no name is near.
std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& valid,
                         const std::string& prefix, const std::string& otherwise);

// Returns the sections of dotted names: "a" and "a.b" of "a.b.c".
std::set<std::string> section_names(const std::vector<std::string>& names);

std::string join(const std::vector<std::string>& words, const char* between);

}  // namespace vitrail
