#include "cli/option_values.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "cli/setting_advice.h"

namespace vitrail::cli {

std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& valid,
                         const std::string& prefix, const std::string& otherwise) {
  const std::string nearest = nearest_name(wrong, valid);
  return nearest.empty() ? otherwise : strf("did you mean %s%s?", prefix.c_str(), nearest.c_str());
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

namespace {
std::string range_text(const OptionSpec& spec) {
  const bool low = std::isfinite(spec.least), high = std::isfinite(spec.most);
  if (low && high) return strf(" from %.15g to %.15g", spec.least, spec.most);
  if (low) return strf(" of at least %.15g", spec.least);
  return high ? strf(" of at most %.15g", spec.most) : "";
}

bool valid_number(const OptionSpec& spec, const std::string& text) {
  const auto integer = parse_integer(text);
  if (spec.kind == ValueKind::kInteger && !integer) return false;
  const auto number = parse_number(text);
  return number && *number >= spec.least && *number <= spec.most;
}

}  // namespace

void check_value(const OptionSpec& spec, const std::string& text, const std::string& place, ErrorKind kind) {
  const bool numeric = spec.kind == ValueKind::kInteger || spec.kind == ValueKind::kNumber;
  if (spec.kind == ValueKind::kFlag && !parse_bool(text))
    throw Error(kind, strf("%s expects true or false, not '%s'", place.c_str(), text.c_str()),
                advice_for(spec));
  if (numeric && !valid_number(spec, text))
    throw Error(kind,
                strf("%s expects %s%s, not '%s'", place.c_str(),
                     spec.kind == ValueKind::kInteger ? "a whole number" : "a number",
                     range_text(spec).c_str(), text.c_str()),
                advice_for(spec));
  if (!spec.choices.empty() &&
      std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end())
    throw Error(
        kind,
        strf("%s expects one of %s, not '%s'", place.c_str(), join(spec.choices, ", ").c_str(), text.c_str()),
        did_you_mean(text, spec.choices, "", advice_for(spec)));
}

}  // namespace vitrail::cli
