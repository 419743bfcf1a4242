#include "base/values.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& valid,
                         const std::string& prefix, const std::string& otherwise) {
  const std::string nearest = nearest_name(wrong, valid);
  return nearest.empty() ? otherwise : strf("did you mean %s%s?", prefix.c_str(), nearest.c_str());
}

std::set<std::string> section_names(const std::vector<std::string>& names) {
  std::set<std::string> sections;
  for (const std::string& name : names)
    for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
      sections.insert(name.substr(0, dot));
  return sections;
}

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::optional<double> parse_number(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_integer(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (*end != '\0' || errno == ERANGE) return std::nullopt;
  return value;
}

std::optional<bool> parse_bool(const std::string& text) {
  for (const char* yes : {"1", "true", "yes", "on"})
    if (text == yes) return true;
  for (const char* no : {"0", "false", "no", "off", ""})
    if (text == no) return false;
  return std::nullopt;
}

}  // namespace vitrail
