// Fields of config structs as settings: option declarations made from a struct's own list of fields, and
// values read back into them. Used for every config that --set and config files can reach.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/options.h"

namespace vitrail::cli {

template <typename T>
OptionSpec field_spec(const std::string& name, const char* help) {
  OptionSpec spec{.name = name, .help = help};
  if constexpr (std::is_same_v<T, bool>) {
    spec.metavar = "BOOL";
    spec.choices = {"true", "false"};
  } else if constexpr (std::is_enum_v<T>) {
    spec.metavar = "KIND";
    spec.choices.assign(std::begin(EnumNames<T>::names), std::end(EnumNames<T>::names));
  } else if constexpr (std::is_integral_v<T>) {
    spec.kind = ValueKind::kInteger;
    spec.metavar = "N";
  } else if constexpr (std::is_floating_point_v<T>) {
    spec.kind = ValueKind::kNumber;
    spec.metavar = "X";
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    spec.kind = ValueKind::kNumber;
    spec.metavar = "X";
    spec.repeated = true;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    spec.metavar = "TEXT";
    spec.repeated = true;
  } else {
    spec.metavar = "TEXT";
  }
  return spec;
}

// What reading a value gave. Error(kConfig) for one that is none of the field's: an option may be declared
// with other choices than the field has.
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

// A field's value as it would be given; several are separated by commas.
template <typename T>
std::string field_text(const T& field) {
  if constexpr (std::is_same_v<T, bool>) {
    return field ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return enum_name(field);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return strf("%.12g", static_cast<double>(field));
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    std::vector<std::string> texts;
    for (const double number : field) texts.push_back(strf("%.4g", number));
    return join(texts, ", ");
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return join(field, ", ");
  } else {
    return field;
  }
}

// Visitors for a list of fields under "prefix.".
struct DeclareFields {
  std::string prefix;
  std::vector<OptionSpec>& specs;
  bool defaults = true;  // the values found in the fields are what holds where nothing is given
  template <typename T>
  void operator()(const char* name, const T& field, const char* help) const {
    specs.push_back(field_spec<T>(prefix + "." + name, help));
    if (defaults) specs.back().usual = field_text(field);
  }
};
struct AssignFields {
  std::string prefix;
  const Options& options;
  std::set<std::string>* given = nullptr;
  template <typename T>
  void operator()(const char* name, T& field, const char*) const {
    const std::string key = prefix + "." + name;
    if (!options.declared(key) || !options.given(key)) return;
    assign_field(options, key, field);
    if (given) given->insert(name);
  }
};

}  // namespace vitrail::cli
