// Fields of config structs as options: declarations made from the lists of base/fields.h, and command-line
// texts read into fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "cli/options.h"

namespace vitrail::cli {

OptionSpec option_of(const FieldSpec& field);
std::vector<OptionSpec> options_of(const std::vector<FieldSpec>& fields);

// Checks the result of reading a value. Throws Error(kConfig) for a text that is no value of the field: an
// option may be declared with other choices than the field has.
template <typename T>
T taken(const std::optional<T>& value, const std::string& name, const std::string& text) {
  if (value) return *value;
  std::vector<std::string> choices = field_spec<T>(name, "").choices;
  throw Error(ErrorKind::kConfig, strf("%s cannot be %s", name.c_str(), quoted(text).c_str()),
              choices.empty() ? "a number is expected" : "one of " + join(choices, ", "));
}

template <typename T>
void assign_field(const Options& options, const std::string& name, T& field) {
  if constexpr (std::is_same_v<T, bool>) {
    field = options.text(name) == "true";
  } else if constexpr (std::is_enum_v<T>) {
    field = taken(enum_from_name<T>(options.text(name)), name, options.text(name));
  } else if constexpr (std::is_integral_v<T>) {
    field = options.integer(name);
  } else if constexpr (std::is_floating_point_v<T>) {
    field = options.number(name);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    field.clear();
    for (const std::string& text : options.list(name)) field.push_back(taken(parse_number(text), name, text));
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    field = options.list(name);
  } else {
    field = options.text(name);
  }
}

// The options of a command as a source of settings (train/config_io.h).
struct OptionSettings {
  const Options& options;

  bool given(const std::string& key) const { return options.declared(key) && options.given(key); }
  bool replaces(const std::string& key, const std::string& other) const {
    return options.origin(key) > options.origin(other);
  }
  template <typename T>
  void assign(const std::string& key, T& field) const {
    assign_field(options, key, field);
  }
};

}  // namespace vitrail::cli
