#include "cli/options.h"

#include <cctype>

#include "base/error.h"
#include "cli/option_values.h"

namespace vitrail::cli {

const char* to_string(Origin origin) {
  static constexpr const char* kNames[] = {"default", "config", "environment", "--set", "flag"};
  return kNames[static_cast<int>(origin)];
}

std::string environment_name(std::string_view option) {
  std::string name = "VITRAIL_";
  for (const char c : option)
    name += c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

const Options::Value& Options::value(std::string_view name) const {
  const auto found = values_.find(name);
  VT_CHECK(found != values_.end(), "no option is declared under the name %s", std::string(name).c_str());
  return found->second;
}

bool Options::given(std::string_view name) const {
  return !value(name).texts.empty();
}
bool Options::flag(std::string_view name) const {
  const Value& v = value(name);
  return !v.texts.empty() && parse_bool(v.texts.back()).value_or(false);
}
const std::string& Options::text(std::string_view name) const {
  static const std::string none;
  const Value& v = value(name);
  return v.texts.empty() ? none : v.texts.back();
}
int64_t Options::integer(std::string_view name) const {
  return parse_integer(text(name)).value_or(0);
}
double Options::number(std::string_view name) const {
  return parse_number(text(name)).value_or(0);
}
const std::vector<std::string>& Options::list(std::string_view name) const {
  return value(name).texts;
}
Origin Options::origin(std::string_view name) const {
  return value(name).origin;
}
Options Options::with(std::string_view name, std::string text) const {
  Options other = *this;
  other.values_.find(name)->second.texts = {std::move(text)};
  return other;
}
const std::string& Options::positional(size_t index) const {
  VT_CHECK(index < positionals_.size(), "positional argument %zu of %zu", index, positionals_.size());
  return positionals_[index];
}

}  // namespace vitrail::cli
