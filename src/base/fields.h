// Fields of config structs as data: what kind each is, what it may be, its default and what it is for, made
// from a struct's own list of fields; and values read into them from JSON. Knows no config, no file and no
// command line.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/enum_names.h"
#include "base/json.h"
#include "base/text.h"
#include "base/values.h"

namespace vitrail {

enum class FieldKind { kBool, kChoice, kInteger, kNumber, kText, kNumbers, kTexts };

struct FieldSpec {
  std::string key;  // "optim.lr"
  std::string help = {};
  FieldKind kind = FieldKind::kText;
  std::vector<std::string> choices = {};  // of kBool and kChoice
  std::vector<FormerName> former = {};    // choices by names that were given up
  std::string usual = {};                 // the default as text; empty: none, or it is not known

  bool several() const { return kind == FieldKind::kNumbers || kind == FieldKind::kTexts; }
};

template <typename T>
FieldSpec field_spec(const std::string& key, const std::string& help) {
  FieldSpec spec{.key = key, .help = help};
  if constexpr (std::is_same_v<T, bool>) {
    spec.kind = FieldKind::kBool;
    spec.choices = {"true", "false"};
  } else if constexpr (std::is_enum_v<T>) {
    spec.kind = FieldKind::kChoice;
    spec.choices.assign(std::begin(EnumNames<T>::names), std::end(EnumNames<T>::names));
    if constexpr (requires { EnumNames<T>::former; })
      spec.former.assign(std::begin(EnumNames<T>::former), std::end(EnumNames<T>::former));
  } else if constexpr (std::is_integral_v<T>) {
    spec.kind = FieldKind::kInteger;
  } else if constexpr (std::is_floating_point_v<T>) {
    spec.kind = FieldKind::kNumber;
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    spec.kind = FieldKind::kNumbers;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    spec.kind = FieldKind::kTexts;
  }
  return spec;
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
    texts.reserve(field.size());
    for (const double number : field) texts.push_back(strf("%.4g", number));
    return join(texts, ", ");
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return join(field, ", ");
  } else {
    return field;
  }
}

// A visitor that lists the fields of a struct under "prefix.".
struct ListFields {
  std::string prefix;
  std::vector<FieldSpec>& specs;
  bool defaults = true;  // the values found in the fields are what holds where nothing is given
  template <typename T>
  void operator()(const char* name, const T& field, const char* help) const {
    specs.push_back(field_spec<T>(prefix + "." + name, help));
    if (defaults) specs.back().usual = field_text(field);
  }
};

// Says which name took the place of a field's former one: "loader.on_device=pictures is now ...".
std::string former_name_note(const std::string& key, const FormerName& former);

// Returns what to try in place of a value that is refused: choices or default, and what the field is for.
std::string field_advice(const FieldSpec& spec);

// Throws Error(kConfig) unless `value` is of the field's kind and one of its choices. `place` is where it is
// written: "run.json: optim.lr".
void check_json(const FieldSpec& spec, const Json& value, const std::string& place);

// Throws Error(kConfig) unless a value, which `key` names, lies in a range.
void require_in_range(const char* key, int64_t value, int64_t least, int64_t most);

// A list of texts, or one; a number stands for its digits.
std::vector<std::string> texts_of(const Json& value);

// A field from JSON, checked.
template <typename T>
void set_field(const Json& value, const FieldSpec& spec, const std::string& place, T& field) {
  check_json(spec, value, place);
  if constexpr (std::is_enum_v<T>) {
    field = *enum_from_name<T>(value.get_ref<const std::string&>());
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    field = texts_of(value);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    // One value alone is a list of one.
    field = value.is_array() ? value.get<T>() : T{value.get<typename T::value_type>()};
  } else {
    field = value.get<T>();
  }
}

}  // namespace vitrail
