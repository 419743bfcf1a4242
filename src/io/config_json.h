// Conversion of JSON to and from Vitrail's config structs by their field visitors, and typed access to other
// programs' JSON objects with messages that name file and key.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/enum_names.h"
#include "base/json.h"
#include "image/preprocess_config.h"
#include "models/vit_config.h"

namespace vitrail {

[[noreturn]] void wrong_type(const std::string& origin, const std::string& key, const Json& value,
                             const char* expected);

int64_t json_int(const Json& value, const std::string& origin, const std::string& key);
double json_number(const Json& value, const std::string& origin, const std::string& key);
bool json_bool(const Json& value, const std::string& origin, const std::string& key);
// Reads a class's name; some configs give numbers for names.
std::string json_label(const Json& value, const std::string& origin, const std::string& key);
std::string json_string(const Json& value, const std::string& origin, const std::string& key);
std::vector<double> json_numbers(const Json& value, const std::string& origin, const std::string& key);
// Reads a list of numbers, one a channel, or a number that stands for every channel.
std::vector<double> json_channels(const Json& value, const std::string& origin, const std::string& key,
                                  size_t channels);

// Returns the value under `key`, or null when the key is absent or null.
const Json* json_find(const Json& object, const char* key);

template <typename T>
void json_assign(const Json& value, const std::string& origin, const std::string& key, T* field) {
  if constexpr (std::is_enum_v<T>) {
    const auto parsed = enum_from_name<T>(json_string(value, origin, key));
    if (!parsed) {
      std::string names;
      for (const char* name : EnumNames<T>::names) names += (names.empty() ? "" : ", ") + std::string(name);
      wrong_type(origin, key, value, ("one of " + names).c_str());
    }
    *field = *parsed;
  } else if constexpr (std::is_same_v<T, bool>) {
    *field = json_bool(value, origin, key);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    *field = json_int(value, origin, key);
  } else if constexpr (std::is_same_v<T, double>) {
    *field = json_number(value, origin, key);
  } else if constexpr (std::is_same_v<T, std::string>) {
    *field = json_string(value, origin, key);
  } else {
    *field = json_numbers(value, origin, key);
  }
}

template <typename T>
Json json_value(const T& field) {
  if constexpr (std::is_enum_v<T>) {
    return enum_name(field);
  } else {
    return field;
  }
}

Json to_json(const VitConfig& config);
Json to_json(const PreprocessConfig& config);

// Sets the fields that the object names. An unknown key is Error(kConfig) with the nearest valid one.
void from_json(const Json& object, const std::string& origin, VitConfig* config);
void from_json(const Json& object, const std::string& origin, PreprocessConfig* config);

}  // namespace vitrail
