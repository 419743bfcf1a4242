#include "io/config_json.h"

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"

namespace vitrail {

namespace {

void require_known(const Json& object, const std::string& origin, const std::vector<std::string>& names) {
  if (!object.is_object()) wrong_type(origin, "vitrail", object, "an object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    const std::string near = nearest_name(key, names);
    throw Error(ErrorKind::kConfig, strf("%s: unknown key '%s'", origin.c_str(), key.c_str()),
                near.empty() ? "remove it from the file" : strf("did you mean %s?", near.c_str()));
  }
}

// The visitor protocol implemented as two actions on a JSON object.
struct Writer {
  Json object = Json::object();
  template <typename T>
  void operator()(const char* name, const T& field, const char*) {
    object[name] = json_value(field);
  }
};

struct Reader {
  const Json& object;
  const std::string& origin;
  template <typename T>
  void operator()(const char* name, T& field, const char*) {
    if (const auto at = object.find(name); at != object.end()) json_assign(*at, origin, name, &field);
  }
};

struct Names {
  std::vector<std::string> list;
  template <typename T>
  void operator()(const char* name, const T&, const char*) {
    list.emplace_back(name);
  }
};

}  // namespace

void wrong_type(const std::string& origin, const std::string& key, const Json& value, const char* expected) {
  std::string text = json_text(value);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  throw Error(ErrorKind::kConfig,
              strf("%s: %s is %s; expected %s", origin.c_str(), key.c_str(), text.c_str(), expected),
              strf("correct %s in the file, or remove it for its default", key.c_str()));
}

int64_t json_int(const Json& value, const std::string& origin, const std::string& key) {
  if (value.is_number_unsigned() ? value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)
                                 : !value.is_number_integer())
    wrong_type(origin, key, value, "an integer");
  return value.get<int64_t>();
}

double json_number(const Json& value, const std::string& origin, const std::string& key) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    wrong_type(origin, key, value, "a finite number");
  return value.get<double>();
}

bool json_bool(const Json& value, const std::string& origin, const std::string& key) {
  if (!value.is_boolean()) wrong_type(origin, key, value, "true or false");
  return value.get<bool>();
}

std::string json_label(const Json& value, const std::string& origin, const std::string& key) {
  return value.is_number() ? value.dump() : json_string(value, origin, key);
}

std::string json_string(const Json& value, const std::string& origin, const std::string& key) {
  if (!value.is_string()) wrong_type(origin, key, value, "a string");
  return value.get<std::string>();
}

std::vector<double> json_numbers(const Json& value, const std::string& origin, const std::string& key) {
  if (!value.is_array()) wrong_type(origin, key, value, "a list of numbers");
  std::vector<double> numbers;
  for (const Json& item : value) numbers.push_back(json_number(item, origin, key));
  return numbers;
}

std::vector<double> json_channels(const Json& value, const std::string& origin, const std::string& key,
                                  size_t channels) {
  if (value.is_number()) return std::vector<double>(channels, json_number(value, origin, key));
  return json_numbers(value, origin, key);
}

const Json* json_find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

Json to_json(const VitConfig& config) {
  Writer writer;
  visit_fields(config, writer);
  return std::move(writer.object);
}

Json to_json(const PreprocessConfig& config) {
  Writer writer;
  visit_preprocess_fields(config, writer);
  return std::move(writer.object);
}

void from_json(const Json& object, const std::string& origin, VitConfig* config) {
  Names names;
  visit_fields(*config, names);
  require_known(object, origin, names.list);
  visit_fields(*config, Reader{object, origin});
}

void from_json(const Json& object, const std::string& origin, PreprocessConfig* config) {
  Names names;
  visit_preprocess_fields(*config, names);
  require_known(object, origin, names.list);
  visit_preprocess_fields(*config, Reader{object, origin});
}

}  // namespace vitrail
