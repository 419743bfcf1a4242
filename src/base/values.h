// Values written as text, and advice about names that are not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vitrail {

// Nothing where the text is more or less than a value.
std::optional<double> parse_number(const std::string& text);
std::optional<int64_t> parse_integer(const std::string& text);
std::optional<bool> parse_bool(const std::string& text);

// "did you mean --top-k?" or `otherwise` when nothing is near.
std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& valid,
                         const std::string& prefix, const std::string& otherwise);

std::string join(const std::vector<std::string>& words, const char* between);

}  // namespace vitrail
